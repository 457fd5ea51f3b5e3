"""What the codes of problems mean, one paragraph each. A code is never used again for something else. Plans have theirs beside them."""

from __future__ import annotations

ALGORITHM: dict[str, str] = {
    "A101": (
        "A dtype that the language does not have. It has bool, the integers of 8 to 64 bits with and without sign, "
        "float16, bfloat16, float8_e4m3fn, float8_e5m2, float32 and float64."
    ),
    "A102": (
        "Python asked for the truth value of a tensor or of an expression (if, while, and, or, not, a chained comparison). The "
        "value is known only when the kernel runs: fl.where chooses between two values, & | ~ combine conditions. In methods, and in "
        "functions that are compiled or decorated with @fl.function, but not in those that they call, if and while on tensors work."
    ),
    "A103": (
        "An expression stands where Python needs a number, or something that is no element of a tensor stands in an expression. "
        "Inside a stage only numbers, axes and indexed tensors have a value."
    ),
    "A104": "Two operands have no common type. Integers and floats of a tensor do not mix by themselves: fl.cast says which type is meant.",
    "A105": "A whole tensor stands where one element is needed. Inside a stage a tensor is indexed: x[i, j].",
    "A106": "A tensor is indexed with more or fewer indices than it has axes.",
    "A107": "Python wanted to iterate over a tensor, or its length, and the first extent is symbolic. A stage goes over all of it instead.",
    "A108": "An index is not an integer. fl.cast makes it one.",
    "A109": (
        "A stage or an operator was called outside an algorithm. Functions and methods are run by fluorite: pass them to "
        "fl.compile or fl.trace, then call the result."
    ),
    "A110": "An attribute or a scope has a name that paths use for something else: grad, update, comm, cast, recompute, scan.",
    "A111": "Two axes of one lambda have the same name.",
    "A112": "extents= or over= speaks of an axis that the lambda does not have.",
    "A113": "Two axes of one stage, those of its reduction included, have the same name. A plan could not tell them apart.",
    "A114": "Only a stage's own result can be given another name. Views, inputs and parameters have theirs already.",
    "A115": "A reduction over a lambda stands outside a stage. Over a whole tensor it takes axis=.",
    "A116": "A dimension in a declaration is a non-negative integer, a name, or name=size.",
    "A117": "A stage or a scope has a name that cannot stand in a plan: it is no text, is too long, or has spaces or special characters.",
    "A118": "An expression has an axis of another lambda. An axis has a value only inside the lambda whose parameter it is.",
    "A119": (
        "What fl.stage or a reduction was given is no function of axes: it cannot be called, or has *args, **kwargs or no parameter. "
        "Parameters with a default are no axes; they keep their value."
    ),
    "A120": "A parameter or state was made and is held by no attribute, so it has no name. Assign it to self in __init__.",
    "A121": "fl.param was given shape= and named axes, which say the same thing.",
    "A122": "The initial value of a parameter has another shape than the parameter.",
    "A123": "A module was called that has neither forward nor __call__.",
    "A124": "The annotations of a function could not be evaluated.",
    "A125": "An input of a function has no declared type and no default value.",
    "A126": "inputs= declares an input that the function does not have.",
    "A127": "A Program has no method with @fl.method, so there is nothing to compile.",
    "A128": "Something was to be compiled that is neither a function nor a Program.",
    "A129": "A Program has no compiled method of that name.",
    "A130": (
        "A method returns something that is no tensor and no tuple, list or dict of tensors; or nothing, and changes no state either."
    ),
    "A131": "A method returns a boundary view. A view is a way to read; return the tensor itself, or a stage that reads it.",
    "A132": "The expression of one stage is too deep, or too long when written out. Stages for parts of it keep each one small.",
    "A133": "A tensor of another trace stands in this one. Tensors belong to the call of the function that made them.",
    "A134": "A stage has a symbolic extent that no input of its method has, so nothing gives it a value.",
    "A135": "A method is called like something that every compiled model has: grad, steps, parameters, save, plan and others.",
    "A136": "@fl.method stands over a static method, a class method or a property. It marks methods with self, on which they are called.",
    "A137": "inputs= says what each input of a function is, such as fl.f32(2, 3); it was given a value, or no mapping.",
    "A138": "A function calls itself without end while it is traced. What a tensor decides is no end: both sides of it are traced.",
    "A140": "A symbolic extent was given a value, and the program has no extent of that name; or a parameter's extent is not a number.",
    "A141": (
        "With these extents some axis of the program would have a negative extent; or an initialiser was given something that it "
        "cannot use."
    ),
    "A150": (
        "The model's file raised an exception while it ran, or while fluorite ran the algorithm in it. The line is the last one "
        "of the file's own; -v prints the whole trace."
    ),
    "A151": "The model's file cannot be read.",
    "A152": "The model's file is not valid Python.",
    "A160": (
        "A stage is defined in terms of itself, or stages in terms of one another, and no axis can be walked so that everything read is "
        "there before. Along one axis every read lies at a fixed number of earlier positions, such as h[t - 1, i]."
    ),
    "A161": (
        "A stage reads itself where it may have no element. Before the first step there is nothing: fl.where(t >= 1, h[t - 1], first), "
        "with the where around each such read."
    ),
    "A162": "What a recurrence computes has another type than what it reads of itself. dtype= says which one it is to be.",
    "A163": "A tensor of a scan's step is used outside it, where it would stand for one step only. The step returns what is wanted.",
    "A164": (
        "The step of a scan returns something else than (carry, y): the carry has the structure, shapes and types of init, and y is a "
        "tensor, a nest of tensors, or None."
    ),
    "A165": "What a scan walks over does not fit together: its tensors have the axis, equally long, or length= gives the number of steps.",
    "A170": "A gradient is that of one number. fl.mean or fl.sum makes one of a tensor; fl.vjp takes what arrives at each element.",
    "A171": "An operation has no derivative here. fl.custom_vjp around it says what it is, fl.stop_gradient that there is none.",
    "A172": "Only tensors of floats have derivatives and can be differentiated by: no integers, no booleans, no boundary views.",
    "A173": "argnums= names an argument that the function does not have, or that it was called without.",
    "A174": "The parts of a derivative do not fit together: what arrives at a tensor has its shape and type, in nests built alike.",
    "A180": "A parameter or state is assigned a tensor of another shape. What the Program holds keeps its shape.",
    "A181": "A parameter or state is assigned a tensor of another type. fl.cast says that it is meant.",
    "A182": (
        "A parameter or state is assigned outside a method. What a method assigns is the next value; the first one is init=, and that of a "
        "compiled model is assigned through model.parameters."
    ),
    "A183": (
        "A method assigns a tensor, an array or another number to an attribute that holds no state. The next call would not see it: a "
        "method is traced once. fl.state makes it part of what the Program holds."
    ),
    "A184": (
        "An element of a list or dict of parameters was replaced by something else while a method ran. Lists do not notice assignments: "
        "element.assign(value) is one."
    ),
    "A191": "An argument of an optimiser or of a learning rate has no meaning: rates and decays are numbers in a range.",
    "A192": "No trainable parameter is meant by params= or decay=: a module, a parameter, the end of a path with wildcards, or a list.",
    "A193": "The loss depends on none of the parameters that are to be moved.",
    "A194": "A gradient that is handed to an optimiser does not belong to a parameter, or has not its shape; or there are two of one.",
    "A195": "@fl.method(batch=...) names the axis of the batch: a symbolic extent of an input.",
    "A196": "@fl.method(reader=...) names an attribute of the Program that the method's inputs are read from.",
    "A197": "A ragged input is used through .padded, .lengths and .mask; it is no tensor itself.",
    "A198": "rows='lazy' is for parameters whose rows are looked up at integer positions, once.",
    "A199": (
        "Random numbers without a key are drawn in methods of a Program, whose state says which ones come next; in a function, and in an "
        "fl.while_loop, they take a key: fl.random.key, split, fold_in."
    ),
    "A200": (
        "model.grad was asked for a derivative that the method does not have: no tensor of this name, no scalar or several that might be "
        "meant, or one that does not depend on the other."
    ),
    "A201": (
        "Two bare reads of one axis need different extents. Reads such as x[i] give the axis the extent of x; make them agree, or "
        "give extents=."
    ),
    "A202": "No read bounds an axis, so its extent is unknown. Give extents= (or over= for a reduction's axis).",
    "A203": "The extent of an axis would be the smaller of two symbolic extents, and which one that is depends on their values.",
    "A204": "A read lies below the first element. A boundary view such as fl.edge says what lies out there.",
    "A205": "A read lies behind the last element. A boundary view says what lies out there, or extents= shortens the axis.",
    "A206": "A largest or smallest element is asked of an axis that never has one.",
    "A207": (
        "fl.reduce takes a function of two elements, an expression of these alone, which makes an element of the same type; a number "
        "that is its identity; and a function of axes."
    ),
    "A208": (
        "What fl.reduce combines with is not associative, or its identity changes something: the numbers show it. A plan groups the "
        "elements as it likes, so the result would not be one. An order of one's own is fl.recurrence."
    ),
    "A211": (
        "An operation that complex numbers do not have: they have no order, no bits and no whole part. fl.abs(z), fl.real(z) and "
        "fl.imag(z) are real."
    ),
    "A209": (
        "fl.extent(..., of=) is an extent that is computed: of one whole number, most= at most, the same for all steps of a loop and all "
        "examples of a batch. Where each has its own, masks say what counts."
    ),
    "A301": "A window reaches over more elements than there are, padding included; or the input's channels do not fit the kernels.",
    "A302": "An axis was given that the tensor does not have.",
    "A303": "The elements cannot be arranged in this shape, or cannot be split into equal parts.",
    "A304": "An argument of a window operator has no meaning: padding, strides, dilations, groups.",
    "A305": "Too many indices, too many index tensors, or more than one ... in one subscript.",
    "A306": "The operator is defined on other types than this one. fl.cast changes the type.",
    "A307": "The operator wants another number of axes.",
    "A310": (
        "An operator on whole tensors was called inside a stage, where single elements are computed. Call it before, and index its result."
    ),
    "A311": "An operand is neither a tensor, nor a NumPy array, nor a number.",
    "A312": "A view of a boundary view. Boundaries come last, just before the reads.",
    "A401": (
        "What decides between branches is not one value: fl.cond takes a bool tensor without axes, fl.switch an integer one. fl.any and "
        "fl.all make one of many; element by element is fl.where."
    ),
    "A402": (
        "Branches return different things. Which one is taken is known only when the kernel runs, so all of them return nests that are "
        "built alike, of tensors of one shape and type."
    ),
    "A403": "A tensor that one branch makes is used outside it, where it has no value if another branch is taken. All branches return it.",
    "A411": (
        "A loop over tensors is left from inside a try, a match or the else of a loop, or a return stands where what follows cannot be "
        "taken into the branches. All steps of such a loop are one, so a variable says whether it is done; a return that is under an if "
        "stands at the end of the function, or in a loop there."
    ),
    "A412": "A variable is different objects after the branches of an if on a tensor. Both leave tensors or numbers, or one object.",
    "A413": "A variable is used that has no value, or has one only if a branch was taken or a loop has run. It is assigned before that.",
    "A414": "A loop cannot walk over this: a scan takes as many steps as an axis is long, from a first one on, in steps of 1.",
    "A415": "A variable changes its shape or type, or is no tensor, from step to step of a loop over tensors, which is one step for all.",
    "A421": (
        "The derivative of an fl.while_loop, whose number of turns is known only when it has run. fl.scan with length= the most turns "
        "there may be has one."
    ),
    "A423": "What a loop carries from turn to turn keeps its structure, shapes and types, and is all that the loop changes.",
    "A431": "fl.extern calls a function of NumPy arrays: it takes the function, the shape and type of what that returns, and tensors.",
    "A433": (
        "A function of NumPy arrays is called between kernels, on whole tensors. The steps of a loop are one kernel, so no fl.extern "
        "stands among them, unless none of them changes its inputs."
    ),
    "A900": "Part of the language that this version does not build yet.",
}
PLAN: dict[str, str] = {
    "P017": "The plan has open holes, and --strict refuses to build with their defaults. `fluorite tune` fills them.",
    "P111": "extents: speaks of an extent that the program does not have. Extents are the names in the declarations of the inputs.",
    "P112": (
        "A variant is for extents that no code is built for. when: {n: 1} makes code for n = 1 where there is none; bounds such as "
        "when: {n: [1, 8]} hold for the buckets within, and make none."
    ),
    "P120": "The plan leaves nothing open that tuning could decide: every value is a pin. Leave a stage out, write auto, or a hole.",
    "P121": "Tuning measures real calls, and their extents are not known. tune: at: in the plan or --extents gives them.",
    "P122": (
        "The journal cannot be read or written, or belongs to another search: another plan, program, target, seed or compiler. "
        "Without --resume the search starts anew, and the journal that is there is kept as NAME.old."
    ),
    "P125": "@fl.method(data_dependent=True) says that a call's time depends on what is in its inputs: tuning measures given ones only.",
    "P123": "tune: objective: names a method that the program does not have.",
    "P124": (
        "The first alternatives of the holes break a condition under tune: where:. They are what an untuned build takes, so they "
        "must be allowed."
    ),
}
BUILD: dict[str, str] = {
    "B001": "The folder's name is the name to import, and this one is no Python name.",
    "B002": "A package of this name would hide a module of Python's own library, one that the model itself needs, or the model's file.",
    "B003": "A method or an input has a name that cannot be a function of a Python module.",
    "B004": "The output exists and was not written by fluorite, so it is not replaced. --force replaces it.",
    "B005": "The runtime library that travels with a built model is not installed beside the compiler.",
    "B006": "The folder cannot be written: no room, read-only, or not there. Nothing was left behind.",
    "B007": (
        "A model in a folder, or in another process, finds the function of an fl.extern by its module and name. This one has none: it is a "
        "lambda, local, or in a file that was not imported."
    ),
    "B010": "The build cache cannot be written. FLUORITE_CACHE names another folder.",
    "B011": "No C compiler was found. It is needed to link the kernels (cc, gcc or clang), not to run what was built.",
    "B020": "Kernels for this target are compiled, but this version runs models on the CPU.",
    "B030": (
        "Code was asked for that only another target has; or the untuned plan, which tuning measures everything against, cannot "
        "be measured."
    ),
    "B031": "nvcc was not found. It is needed to build for a CUDA GPU, not to see the CUDA C.",
    "B032": "nvcc refused the code, or did not finish.",
}
RUN: dict[str, str] = {
    "R001": "The folder is no built model: its manifest is missing or cannot be read.",
    "R002": "The manifest is damaged.",
    "R003": "The model was built by a version whose format this one does not read.",
    "R004": "A file of the model is missing, cut short, or was changed after it was built.",
    "R005": "The model was built for another system or kind of machine.",
    "R006": (
        "The model was built for a processor with instructions that this one lacks. target: {cpu: ...} in the plan says what it "
        "may rely on."
    ),
    "R007": "The model needs another version of the package apache-tvm-ffi.",
    "R008": "FLUORITE_THREADS is neither a number nor `all`.",
    "R009": "The library of kernels cannot be loaded.",
    "R010": "A weights file cannot be read, is damaged, or lacks a tensor.",
    "R011": "The model calls a function of a Python module, fl.extern, that cannot be imported here.",
    "R012": "The kernels use the tile registers of AMX, and the system does not let this process have them.",
    "R101": "An input is missing, or there are too many.",
    "R102": "An input is given twice, by position and by name.",
    "R103": "The method has no input of that name.",
    "R104": (
        "An input has the wrong type. Arrays are never converted silently; numbers and lists take the declared type if no part of "
        "them is lost."
    ),
    "R105": "An input has the wrong shape, or two inputs disagree about an extent.",
    "R106": "An input lies on another device or cannot be shared.",
    "R107": "The model was not built for these extents. extents: in the plan says for which it is.",
    "R108": "An extent has to be given to answer this.",
    "R109": "There is not enough memory for the call.",
    "R110": "A parameter is missing, or there is none of that name.",
    "R111": "A parameter has the wrong type or shape.",
    "R112": "out= is not built like the result, or cannot be written to.",
    "R113": "A file cannot be written.",
    "R114": "The model has several methods, or none of that name.",
    "R116": "An attribute of a compiled model cannot be assigned. What it holds is in model.parameters, by its path.",
    "R117": "A model was to go back to its first values, and has no initialisers to draw them from.",
    "R118": "The call would take more memory than the plan's memory: limit allows. What it would take is listed.",
    "R119": "A pass was asked of a method that reads nothing. @fl.method(reader=...) says what it reads.",
    "R120": "With these inputs an axis would have a negative extent.",
    "R121": "A maximum or minimum over nothing has no value.",
    "R122": "With these inputs a stage reads a tensor that has no elements.",
    "R123": "The function of an fl.extern raised an error, or returned an array of another shape or type than the stage has.",
    "R124": "An extent that is computed comes out larger than its declared most.",
    "R201": "A reader of data was given something without a meaning: a size, a column, a part, or an order that it cannot read in.",
    "R202": "A file of data cannot be read, or is not of the kind that it was given as.",
    "R203": "A line of a CSV file has other cells than the first, or a cell that is no number of the type that is wanted.",
    "R204": "The examples of some data are not alike, or there are none: every one has the same arrays, of the same shapes and types.",
    "R205": "The data is empty, or is a Python iterator that is used up. A list, or a function that makes the iterator, can be read again.",
    "R206": "A package that reads this kind of data is not installed.",
    "R207": (
        "batch_size= and data= change what the methods of a Program read. It has no method with a reader, none of that name, or several: "
        "then data= is a mapping by reader."
    ),
    "R130": "The file of inputs is no .npz file of arrays and no folder of .npy files. Nothing is ever unpickled.",
    "R131": "An extent was given that the program does not have, or that is no whole number.",
    "R132": "A derivative was asked of a model without its algorithm: an artefact, or one that was compiled from a graph.",
    "R133": "The limit of a search has no meaning: trials are at least one, minutes not negative.",
    "R301": "There is no checkpoint in the folder.",
    "R302": "A checkpoint is damaged: a file is missing, cut short, or was changed after it was written.",
    "R303": "A checkpoint was written by a version whose format this one does not read.",
    "R304": "A checkpoint does not fit the model: it is of another program, or what its methods read has passes of another length.",
    "R310": "A method cannot be trained, or evaluated with, so: training calls one that changes state, evaluation one that does not.",
    "R311": "A training process died more often than --restarts allows: by a signal, without memory, or by a bug of fluorite's.",
    "R400": "The command does not say what to do. --help shows what it takes.",
    "R401": "The file exists and fluorite did not write it, or it was changed since. --force replaces it.",
    "R402": "The file cannot be written.",
    "R403": "A file given with --set cannot be read, or does not hold what its name says.",
    "R404": "A result has no picture: it needs two axes, or a third of 1, 3 or 4 colours.",
    "R406": "A package that is only needed to write TensorBoard files is not installed: pip install 'fluorite[tensorboard]'.",
    "R405": "A package that is only needed for pictures is not installed.",
    "R490": "Part of the command line that this version does not build yet.",
    "R499": "Interrupted from the keyboard.",
}
INTERNAL: dict[str, str] = {
    "X001": "A bug of fluorite. The report has what is needed to find it; please send it along with the model and the plan, if you may.",
}


def all_codes() -> dict[str, str]:
    """Every code with its paragraph."""
    from fluorite.schedule import CODES

    return {**ALGORITHM, **PLAN, **CODES, **BUILD, **RUN, **INTERNAL}

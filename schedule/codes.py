"""What the codes of plan problems mean, one paragraph each. A code is never used again for something else."""

from __future__ import annotations

CODES: dict[str, str] = {
    "P001": (
        "The file is not YAML. A frequent cause is a selector that starts with *, which YAML takes for an alias: write the selector "
        "without a leading */, since it matches at any depth anyway, or quote it. Another is a tab used for indentation."
    ),
    "P002": (
        "A key stands twice in one mapping. YAML readers would keep the last one and say nothing, so half of what was written would be "
        "ignored. Keep one, or merge the two lists under it."
    ),
    "P003": "A list or a mapping stands where a key should be. Keys of a plan are words: sections, fields, selectors, axes.",
    "P004": (
        "YAML tags (!!int), anchors (&name), aliases (*name) and several documents in one file are not part of a plan. The type of a "
        "value comes from the field that it stands in. To reuse a value, give it a name under holes: and write $name."
    ),
    "P005": "The file is longer than 1 MiB, nests more than 64 deep, or holds bytes that are not printable UTF-8 text.",
    "P006": (
        "A key, a section or a directive that does not exist. Nothing in a plan is silently ignored, so a misspelt key is an error; the "
        "nearest names are shown. Remarks go under note:, which is allowed in every mapping."
    ),
    "P007": "A mapping lacks a key that it cannot do without, such as the axis of a split.",
    "P008": (
        "A value is of another type than its field, or outside the bounds of it. Quotes make text of a number: factor: 8, not factor: '8'."
    ),
    "P009": (
        "Two values contradict each other, or together say something that has no meaning, such as a split by factor and factors at once."
    ),
    "P010": "A plan file named on the command line or under extends: cannot be read, or there is no preset of that name.",
    "P011": "A plan extends itself, directly or through its parents, or has more than 64 ancestors.",
    "P012": "null takes away what a parent named in extends: says, but no parent says it. Remove the line, or correct its key.",
    "P013": "The plan was written for a newer version of the language than this fluorite reads.",
    "P014": (
        "A hole is wrong: $name that nobody defines, a range whose ends are swapped, arithmetic on a hole that is not an integer, or one "
        "name defined twice with different values. Named holes are defined under holes:, as in  holes: {tx: {choose: [8, 16]}}."
    ),
    "P015": (
        "A condition under tune: where: cannot be understood. It may hold integers, sizes such as 256KiB, named holes, + - * // %, "
        "comparisons, and, or, not, and parentheses."
    ),
    "P016": (
        "A hole was to be filled with a value that the plan does not allow, or the plan has no such hole. Journals of another plan do this."
    ),
    "P101": (
        "A selector matches nothing in the program. The nearest names are shown. Selectors match at any depth by themselves, but enter "
        "gradients and updates only if they say grad/ or update/. In the long form, {select: [...], optional: true, do: [...]} "
        "may match nothing."
    ),
    "P102": (
        "A selector without a wildcard matches several stages of one method. Without a wildcard it may match one per method, so that "
        "nothing is scheduled by accident. Write a wildcard to mean all of them, or more of the path to mean one."
    ),
    "P103": (
        "Two entries of one file mean the same stage, and neither is more specific than the other. Specificity goes: anchored, literal "
        "parts, a range, *, key=value, **. An entry of a nearer file wins over its parents' whatever the specificity."
    ),
    "P104": "A key of schedule: names a module or an operator of several stages. Directives shape the loops of one stage: name it.",
    "P105": (
        "The selectors of one entry do not match together. Within an entry the k-th wildcard stands for the same text in each of them, and "
        "every binding needs all members."
    ),
    "P106": (
        "The text is no selector. A part may be a name, hold * or a range <0-5>, or be ** alone; the end may be kind=, role=, op= "
        "or dtype=."
    ),
    "P110": "The plan was made for another program, or for the program before it changed.",
    "P203": (
        "A directive names a loop that the nest does not have, or no longer has: split, tile and fuse use names up and make new ones. The "
        "loops that there are at that point are listed, outermost first."
    ),
    "P204": "A stage cannot be computed at that loop of that stage. The legal loops are listed.",
    "P205": (
        "A stage that is a result, or that another kernel reads, is stored whole. It is computed inside a loop of another one only where "
        "that reads each of its elements once, at its own place."
    ),
    "P206": "A directive makes a loop name that the nest has already. Give the new loops other names with into:.",
    "P207": "The factors of a split do not multiply to the extent of the loop. Write ~ for one of them: it becomes what is left.",
    "P208": "fuse joins loops that are directly inside one another, in that order, and all of one sort: all reductions, or none.",
    "P209": "A loop is parallel, vectorised, unrolled or bound to the GPU once. Split it to treat its parts differently.",
    "P210": (
        "A reduction loop cannot be parallel or vectorised as it is, since its iterations add into one place. rfactor makes "
        "partial results."
    ),
    "P211": "The extent of the loop has to be known when the kernel is built, and small enough to be written out.",
    "P212": "Parallel loops do not nest. Fuse the two, or make one of them serial.",
    "P213": "The memory is too small for what the stage keeps there at a time, or the size is not known when the kernel is built.",
    "P214": (
        "argmax and argmin keep one running best, of equal values the first: no loop over other positions may lie inside their loops, and "
        "these run in the order of the axes. So do those of fl.reduce with a combiner that does not commute."
    ),
    "P215": (
        "Loops inside a vectorised one are serial or unrolled, and their extents are known when the kernel is built. Reorder, so that the "
        "vectorised loop is innermost."
    ),
    "P216": (
        "Unrolled loops multiply: each writes out all that the loops inside it do. Beyond some thousand operations the code generator "
        "takes minutes and the processor's cache of instructions does not hold the result. Unroll fewer loops, or parts of them."
    ),
    "P217": "The rows of a sort may run in parallel, but not in the lanes of a vector: its steps depend on what it compares.",
    "P218": (
        "A scatter adds values at positions that are data, and a sort may put any element first: both are computed whole, and no stage "
        "reads them before they are finished."
    ),
    "P219": (
        "Two directives of one stage cannot both be followed: where it is computed and stored is said once, and a stage that "
        "compute_inline writes into its readers has no loops and no memory of its own."
    ),
    "P220": "A rewrite makes a stage under a path that exists already. Give it another name with into:.",
    "P221": "order: and sizes: of pack and cache speak of the axes of the tensor or stage; order: names each of them once.",
    "P222": (
        "rfactor takes a reduction loop of a sum, product, minimum or the like, and a factor; find_best takes an argmax or argmin, and "
        "leaves reductions that rfactor takes. Of fl.reduce with a combiner that does not commute, rfactor takes the first loop."
    ),
    "P223": "pack and stage_in name an operand, and the stage reads none of that name, or several.",
    "P224": "Only what is known at build, parameters and constants, can be packed at build. Write when: call for anything else.",
    "P225": (
        "A reduction, or a result of the program, cannot be written into the places that read it, and neither can a stage that would make "
        "the expression there too large to compile. compute_at keeps it near them."
    ),
    "P226": (
        "Padding makes axes of a stage longer, layout puts them into another order: neither is for a result, whose shape and order the "
        "algorithm says. Reduction loops take no pad and no shift, since what is computed beyond, or again, would be added."
    ),
    "P227": "pack keeps a copy in another type only where that is wider: every number of the operand is one of it.",
    "P230": (
        "Two stages share a kernel, by a fusion group or because compute_at, compute_inline, cache or pack put them there, and "
        "fusion: never forbids it."
    ),
    "P231": "A kernel would need a stage outside it that itself needs the kernel. Add that stage to the group, or cut the group there.",
    "P240": (
        "The target names a processor or a GPU architecture that the code generator does not know, and would take for the oldest one. "
        "cpu: native is this machine's; GPUs are called sm_80, sm_90 and so on."
    ),
    "P250": (
        "A directive belongs to another kind of machine: parallel to a CPU; gpu_blocks, gpu_threads, fetch and shared memory to a GPU. "
        "What the target is stands under target:."
    ),
    "P251": (
        "Blocks of one GPU kernel cannot wait for one another, so one stage owns the kernel and all others are computed inside it "
        "(compute_at) or written into it (compute_inline)."
    ),
    "P252": (
        "The stage that owns a GPU kernel deals its outermost loops to blocks, and only that stage does. gpu_blocks names them, "
        "outermost first."
    ),
    "P253": "A block has at most 1,024 threads, and at most 64 along the outermost of three thread loops.",
    "P254": (
        "Registers belong to one thread. A stage that is kept in them is computed inside the innermost thread loop of its reader, and is "
        "not itself dealt to threads. What threads share goes into shared memory."
    ),
    "P255": (
        "All stages of a GPU kernel run on the same threads. A stage in shared memory is dealt to them by fetch, or by gpu_threads with "
        "the same extents as the kernel's."
    ),
    "P256": "A GPU thread moves at most 16 bytes at once: four float32.",
    "P257": "fetch deals all loops of a stage to the threads by itself: no other loop directive goes with it; a reduction has gpu_threads.",
    "P258": (
        "gpu_threads on a reduction loop makes every thread reduce its share and the block combine the results, one state a thread: no "
        "vectors, no virtual threads, and nothing that does not commute."
    ),
    "P259": (
        "A block has 48 KiB of shared memory, for all stages in it together, and a stage that is computed inside blocks cannot be kept in "
        "global memory."
    ),
    "P260": (
        "store_at keeps a stage further out than compute_at computes it: at a loop of the same reader, or at the loop at which that reader "
        "is itself computed. The loops between are serial and move what is needed forwards, so that something is left from one iteration "
        "to the next."
    ),
    "P261": (
        "fold keeps the last positions along one axis of a stage that store_at keeps. One iteration must not need more positions than "
        "that, and how many it needs must be known when the kernel is built."
    ),
    "P262": (
        "prefetch names an operand that comes from outside the kernel, and a loop outside the innermost tile whose iterations read "
        "different parts of it."
    ),
    "P263": (
        "align begins every row of a stage at a multiple of some bytes: along the last axis that is stored, a power of two up to 64, for a "
        "stage whose memory its kernel takes for itself."
    ),
    "P264": (
        "software_pipeline names a serial loop at which other stages are computed, and these run ahead: each iteration of theirs has to "
        "start anew. What slides from one iteration to the next (store_at), or is computed step by step, does not."
    ),
    "P265": (
        "asynchronous copies bring tiles from global to shared memory as they are, 4, 8 or 16 bytes at a time, on NVIDIA's sm_80 and "
        "later. A stage that computes something, or reads what the same kernel makes, is no copy."
    ),
    "P266": (
        "compute_with makes one nest of the loops of two stages. Neither needs the other, both are computed at the same place, and their "
        "loops agree in extent and kind, outermost first, down to the one that is named, which lies outside the vectors."
    ),
    "P267": (
        "stream writes a stage past the caches, element by element and each once: a result, or what only other kernels read. What is added "
        "up in place, or handed on from one step to the next, is read again at once."
    ),
    "P270": (
        "The stages of a recurrence or loop are one kernel on a GPU, computed step by step or turn by turn. Blocks do not wait for one "
        "another, so there is one, or they are dealt axes along which the stages never meet, in all of them alike. The stages hand on "
        "values in global memory: nothing is computed inside them in shared memory."
    ),
    "P271": "A recurrence reads what it stores, so a rewrite that moves its value elsewhere, or writes it into its readers, cannot be.",
    "P272": (
        "A recurrence reads what it has computed at earlier positions of one axis, its clock. The loops along the clock run one after the "
        "other and in order: they are not parallel, vectorised or fused, and loops of axes along which it reads other places stay inside."
    ),
    "P273": (
        "The stages of one recurrence are computed together, step by step. They are not computed at a loop of another stage, nor other "
        "stages at theirs; a recurrence of one stage may be, where it reads itself at its own place."
    ),
    "P274": (
        "An fl.extern is computed by a function of NumPy arrays, whole and outside all kernels: no directive changes it, nothing is "
        "computed inside it, nothing shares a kernel with it, and its inputs are as the algorithm says."
    ),
    "P275": "An fl.extern calls a function of Python's, which the kernels of a GPU do not.",
    "P280": (
        "tensorize replaces the innermost loops of a sum of products by one instruction. The types, the loops and their extents have to be "
        "those of the instruction; what else lies inside the reduction is constant and written out."
    ),
    "P281": (
        "An instruction reads its operands in an order of its own: k along the first, and in the other 4 bytes of k side by side for each "
        "column. pack makes such a copy, and fills it up with zeros where extents do not divide."
    ),
    "P282": (
        "The target does not have the instruction. target: {cpu: ..., features: [...]} says what code may rely on; native is this machine."
    ),
    "P283": (
        "On a GPU the 32 threads of a warp compute an instruction together: a tensorized stage there has gpu_warps and no gpu_threads, and "
        "gpu_warps is for such stages only."
    ),
    "P284": (
        "gpu_lanes binds a loop of a power of two iterations, 32 at most, to the lanes of a warp, which are threadIdx.x: gpu_threads have "
        "the two other dimensions."
    ),
    "P301": (
        "A directive or section needs a numerics class above what the plan allows. The classes are exact, reassociates, precision and "
        "relaxed; numerics: {allow: ...} sets the ceiling."
    ),
    "P401": (
        "A call takes more memory than memory: limit. The parts are listed, and the largest values that are there where most is needed. "
        "Computing stages inside their readers, recompute, narrower types and smaller extents take less."
    ),
    "P402": "A stage cannot be computed again for its later readers: it is a result or part of a recurrence. Or there are none.",
    "P403": (
        "precision: loss_scale, gradients and optimizer are about training: methods that move parameters by gradients. A loss is scaled "
        "where its gradients could vanish, which those of float32 and wider types do not; its adjoints have to be linear in the seed."
    ),
    "P404": (
        "memory: recompute: auto chooses what the backward pass computes again so that every call stays within memory: limit. It needs the "
        "limit, and bounds for all extents; where no choice is found that fits, the least that was reached is said."
    ),
    "P901": "The section is part of the language, so it is read and written, but this version does not build it yet.",
    "P903": "A key, or this value of it, is part of the language, so it is read and written, but this version does not build it yet.",
}

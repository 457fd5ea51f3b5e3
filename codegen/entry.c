/* The way into a library of kernels: one call from Python runs a whole method.

   Linked into every kernels.so. It is given arrays as Python has them, finds the code that was made ready for their types and shapes, and
   calls kernel after kernel. What it does not know it leaves to the runtime (`runtime/native.py`), whose structures these are: they are laid
   out there, and live there. It needs no header of Python or NumPy: both promise where the few fields stand that are read here, and
   the runtime looks whether they do before it comes here. Everything but kernels runs while Python's lock is held. */

#include <math.h>
#include <stdint.h>
#include <string.h>
#include <tvm/ffi/c_api.h>

enum { KEPT = 4 };

typedef struct {
  int64_t references;
  void *type;
} Object;

typedef struct {
  Object head;
  char *data;
  int axes;
  intptr_t *extents, *strides;
  Object *base;
  void *element;
  int flags;
  Object *weak;
} Array;

typedef struct {
  void (*take)(void *), (*drop)(void *);
  void *(*unlock)(void);
  void (*lock)(void *);
  Object *(*tuple)(intptr_t);
  int (*fill)(Object *, intptr_t, Object *);
  Object *(*call)(void *);
  Object *(*array)(void *type, void *element, int axes, const intptr_t *extents, const intptr_t *strides, void *data, int flags, void *like);
  void *array_type, *float_type;
  Object *no, *yes;
  int64_t *(*threads)(void);
} Host;

/* An array that is asked for: `element` is its dtype, `flags` what must be said of it, `mask` the bits of its address that are 0, `scalar` the
   type whose objects hold one such number; `given` is 32 or 64 where a float of Python may stand for it. */
typedef struct {
  void *element, *scalar;
  int64_t axes;
  const intptr_t *extents;
  int64_t flags, mask, bytes, given;
} Want;

typedef struct {
  Object *function; /* of the foreign-function library; NULL where bytes are copied */
  const TVMFFIAny *arguments;
  int64_t count;
} Step;

/* The memory of one call in flight. */
typedef struct Frame {
  struct Frame *next;
  const Step *steps;
  DLTensor *const *places; /* inputs, then outputs */
} Frame;

typedef struct {
  Object *owner;
  const Host *host;
  int64_t inputs, outputs, steps, single, unlocked;
  const Want *wants;
  Object **kept;    /* KEPT results of each output, used again when nobody else has them */
  Object **makers;  /* of each output, what makes an array for it; NULL where NumPy does */
  int64_t *oldest;
  Frame *free;
  Frame *added; /* by the runtime, until a call takes it: between two steps of Python's another thread may change `free` */
  int64_t *calls;   /* how many have changed state */
  int64_t changing; /* what they change: an address and an end each */
  char *const *changed;
  Object *raise;
  int64_t threads; /* how many kernels use; 0 if none starts any */
} Form;

typedef struct {
  int64_t count;
  Form *const *forms;
} Forms;

typedef struct {
  const Host *host;
  const Forms *known;
} Entry;

/* How many threads kernels were last told to use, where they are started from this one. Of all libraries of a process one keeps it. */
static _Thread_local int64_t told;
static int64_t *threads(void) { return &told; }

static uint32_t references(const Object *o) { return (uint32_t)o->references; }

static int is_array(const Host *host, const Want *want, const Object *given) {
  if (given->type != host->array_type) return 0;
  const Array *a = (const Array *)given;
  if (a->element != want->element || a->axes != want->axes || (a->flags & want->flags) != want->flags) return 0;
  for (int64_t n = 0; n < want->axes; ++n)
    if (a->extents[n] != want->extents[n]) return 0;
  return a->data != NULL && !((uintptr_t)a->data & want->mask);
}

/* Where the numbers of an input are; NULL if it is not what is wanted. */
static char *numbers(const Host *host, const Want *want, Object *given, double *room) {
  if (is_array(host, want, given)) return ((Array *)given)->data;
  if (want->axes) return NULL;
  char *value = (char *)given + sizeof(Object);
  if (given->type == want->scalar) return (uintptr_t)value & want->mask ? NULL : value;
  if (given->type != host->float_type || !want->given || (uintptr_t)room & want->mask) return NULL;
  *room = *(double *)value;
  if (want->given == 32) {
    float narrow = (float)*room;
    if (isinf(narrow) && !isinf(*room)) return NULL;
    memcpy(room, &narrow, sizeof narrow);
  }
  return (char *)room;
}

static int meets(const char *a, int64_t bytes, const char *low, const char *high) { return a < high && low < a + bytes; }

/* Whether the call can be made of these arguments; where their numbers are. */
static int fits(const Form *form, Object *const *given, int into, char **data, double *room) {
  for (int64_t n = 0; n < form->inputs; ++n) {
    if ((data[n] = numbers(form->host, &form->wants[n], given[n], &room[n])) == NULL) return 0;
    for (int64_t k = 0; k < form->changing; ++k)
      if (meets(data[n], form->wants[n].bytes, form->changed[2 * k], form->changed[2 * k + 1])) return 0;
  }
  for (int64_t n = form->inputs; into && n < form->inputs + form->outputs; ++n) {
    if (!is_array(form->host, &form->wants[n], given[n])) return 0;
    data[n] = ((Array *)given[n])->data;
    for (int64_t k = 0; k < n; ++k)
      if (meets(data[k], form->wants[k].bytes, data[n], data[n] + form->wants[n].bytes)) return 0;
    for (int64_t k = 0; k < form->changing; ++k)
      if (meets(data[n], form->wants[n].bytes, form->changed[2 * k], form->changed[2 * k + 1])) return 0;
  }
  return 1;
}

/* An array for a result: one that a caller has dropped, else a new one. NULL, and Python's error is set, where there is no memory. */
static Object *result(const Form *form, int64_t n) {
  const Host *host = form->host;
  const Want *want = &form->wants[form->inputs + n];
  Object **kept = form->kept + n * KEPT;
  for (int k = 0; k < KEPT; ++k) {
    Object *held = kept[k];
    if (references(held) != 1 || !is_array(host, want, held)) continue;
    const Array *a = (const Array *)held;
    if (a->weak != NULL || (a->base != NULL && references(a->base) != 1)) continue;
    host->take(held);
    return held;
  }
  Object *made;
  if (form->makers[n] != NULL) {
    made = host->call(form->makers[n]);
  } else {
    host->take(want->element);
    made = host->array(host->array_type, want->element, (int)want->axes, want->extents, NULL, NULL, 0, NULL);
  }
  if (made == NULL) return NULL;
  Object **place = kept + form->oldest[n];
  Object *before = *place;
  form->oldest[n] = (form->oldest[n] + 1) % KEPT;
  host->take(made);
  *place = made;
  host->drop(before);
  return made;
}

static int run(const Step *steps, int64_t count) {
  for (const Step *step = steps; step < steps + count; ++step) {
    if (step->function == NULL) {
      memcpy(step->arguments[0].v_ptr, step->arguments[1].v_ptr, (size_t)step->count);
      continue;
    }
    TVMFFIAny nothing = {0};
    const TVMFFIFunctionCell *cell = (const TVMFFIFunctionCell *)((const char *)step->function + sizeof(TVMFFIObject));
    int failed = cell->safe_call(step->function, step->arguments, (int32_t)step->count, &nothing);
    if (failed) return failed;
  }
  return 0;
}

/* The results, as Python has them: None if the call is left to the runtime. */
static Object *entered(Form *form, int into, char **data) {
  const Host *host = form->host;
  Frame **from = form->free != NULL ? &form->free : &form->added;
  Frame *frame = *from;
  if (frame == NULL || (form->threads && form->threads != *host->threads())) {
    host->take(host->no);
    return host->no;
  }
  *from = from == &form->free ? frame->next : NULL;
  host->take(form->owner);
  Object *made[form->outputs + 1];
  int64_t have = 0;
  for (; !into && have < form->outputs; ++have) {
    if ((made[have] = result(form, have)) == NULL) break;
    data[form->inputs + have] = ((Array *)made[have])->data;
  }
  int failed = !into && have < form->outputs;
  int raised = failed;
  if (!failed) {
    for (int64_t n = 0; n < form->inputs + form->outputs; ++n)
      if (frame->places[n] != NULL) frame->places[n]->data = data[n];
    void *state = form->unlocked ? host->unlock() : NULL;
    failed = run(frame->steps, form->steps);
    if (form->unlocked) host->lock(state);
    if (!failed && form->calls != NULL) ++*form->calls;
  }
  frame->next = form->free;
  form->free = frame;
  Object *found = NULL;
  if (failed) {
    for (int64_t n = 0; n < have; ++n) host->drop(made[n]);
    if (!raised) host->call(form->raise);
  } else if (into) {
    host->take(host->yes);
    found = host->yes;
  } else if (form->single) {
    found = made[0];
  } else if ((found = host->tuple((intptr_t)form->outputs)) != NULL) {
    for (int64_t n = 0; n < form->outputs; ++n) host->fill(found, (intptr_t)n, made[n]);
  } else {
    for (int64_t n = 0; n < have; ++n) host->drop(made[n]);
  }
  host->drop(form->owner);
  return found;
}

static Object *enter(Object *self, Object *const *given, intptr_t count, int into) {
  const Entry *entry = (const Entry *)((const Array *)self)->data;
  const Forms *known = entry->known;
  for (int64_t k = 0; k < known->count; ++k) {
    Form *form = known->forms[k];
    if (count != form->inputs + (into ? form->outputs : 0)) continue;
    char *data[form->inputs + form->outputs + 1];
    double room[form->inputs + 1];
    if (fits(form, given, into, data, room)) return entered(form, into, data);
  }
  entry->host->take(entry->host->no);
  return entry->host->no;
}

static Object *call(Object *self, Object *const *given, intptr_t count) { return enter(self, given, count, 0); }
static Object *write(Object *self, Object *const *given, intptr_t count) { return enter(self, given, count, 1); }

/* A PyMethodDef. */
typedef struct {
  const char *name;
  Object *(*function)(Object *, Object *const *, intptr_t);
  int flags;
  const char *doc;
} Method;

enum { METH_FASTCALL = 0x80 };
static struct {
  Method call, write;
  int64_t *(*threads)(void);
} entrance = {
    {"call", call, METH_FASTCALL, "call(*inputs): the results, or None."},
    {"write", write, METH_FASTCALL, "write(*inputs, *outputs): True, or None."},
    threads,
};

TVM_FFI_DLL_EXPORT int __tvm_ffi_fluorite_entrance_2(void *self, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result) {
  (void)self, (void)arguments, (void)count;
  result->type_index = kTVMFFIInt;
  result->zero_padding = 0;
  result->v_int64 = (int64_t)(intptr_t)&entrance;
  return 0;
}

/* Fails with the error that the last kernel left. */
TVM_FFI_DLL_EXPORT int __tvm_ffi_fluorite_raise(void *self, const TVMFFIAny *arguments, int32_t count, TVMFFIAny *result) {
  (void)self, (void)arguments, (void)count, (void)result;
  return -1;
}

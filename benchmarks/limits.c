/* Peaks of this machine, all threads together: fused multiply-adds in registers, and reading so many bytes again and again. `limits THREADS BYTES` */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

typedef float vector __attribute__((vector_size(64), aligned(4)));
enum { HUGE_PAGE = 2 << 20, STEPS = 1000000, CHAINS = 20, LANES = 16 };
static pthread_barrier_t ready;
static size_t elements;
static volatile float sink;

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }

static void multiply_add(void) {
    vector a[CHAINS], m, b;
    for (int i = 0; i < CHAINS; i++) for (int l = 0; l < LANES; l++) a[i][l] = i + l;
    for (int l = 0; l < LANES; l++) { m[l] = 0.999f; b[l] = 0.001f; }
    for (int n = 0; n < STEPS; n++) {
#pragma GCC unroll 20
        for (int i = 0; i < CHAINS; i++) a[i] = a[i] * m + b;
    }
    float s = 0;
    for (int i = 0; i < CHAINS; i++) s += a[i][0];
    sink = s;
}

static void read_all(const float *from, int times) {
    vector s[8] = {0};
    for (int t = 0; t < times; t++) {
        __asm__ volatile("" ::: "memory");              /* or the compiler reads once and multiplies */
        for (size_t i = 0; i + 128 <= elements; i += 128) {
#pragma GCC unroll 8
            for (int k = 0; k < 8; k++) s[k] += *(const vector *)(from + i + 16 * k);
        }
    }
    for (int k = 1; k < 8; k++) s[0] += s[k];
    sink = s[0][0];
}

static int times;
static double begun[256], ended[256];

static void *work(void *number) {
    size_t me = (size_t)number;
    size_t bytes = (elements * sizeof(float) + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    float *mine = aligned_alloc(HUGE_PAGE, bytes);
#ifdef MADV_HUGEPAGE
    madvise(mine, bytes, MADV_HUGEPAGE);
#endif
    memset(mine, 1, bytes);                                 /* zeros would be one shared page */
    if (times) read_all(mine, 1);
    pthread_barrier_wait(&ready);
    begun[me] = now();
    if (times) read_all(mine, times); else multiply_add();
    ended[me] = now();
    free(mine);
    return NULL;
}

/* Seconds from the first start to the last end, the best of some rounds. */
static double timed(int threads, size_t bytes, int repeats) {
    double best = 1e9;
    for (int round = 0; round < 5; round++) {
        pthread_t t[256];
        pthread_barrier_init(&ready, NULL, threads);
        elements = bytes / threads / sizeof(float), times = repeats;
        for (size_t i = 0; i < (size_t)threads; i++) pthread_create(&t[i], NULL, work, (void *)i);
        for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
        double first = begun[0], last = ended[0];
        for (int i = 1; i < threads; i++) {
            if (begun[i] < first) first = begun[i];
            if (ended[i] > last) last = ended[i];
        }
        if (last - first < best) best = last - first;
    }
    return best;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1;
    size_t bytes = count > 2 ? strtoull(arguments[2], NULL, 10) : 1 << 20;
    if (threads < 1 || threads > 256 || bytes < 65536) return 2;
    int repeats = 1 + (int)((200 << 20) / bytes);
    printf("{\"flops\": %.3e", threads * 2.0 * STEPS * CHAINS * LANES / timed(threads, 65536, 0));
    printf(", \"bytes\": %.3e}\n", (double)repeats * bytes / timed(threads, bytes, repeats));
    return 0;
}

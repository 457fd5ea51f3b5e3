/* Peaks of this machine: fused multiply-adds in registers, and reading memory. Prints GFLOP/s and GB/s of all threads together. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef float vector __attribute__((vector_size(64), aligned(4)));
static pthread_barrier_t start, end;
static size_t elements;
static volatile float sink;

static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }

static void multiply_add(void) {
    vector a[20], m, b;
    for (int i = 0; i < 20; i++) for (int l = 0; l < 16; l++) a[i][l] = i + l;
    for (int l = 0; l < 16; l++) { m[l] = 0.999f; b[l] = 0.001f; }
    for (int n = 0; n < 2000000; n++) {
#pragma GCC unroll 20
        for (int i = 0; i < 20; i++) a[i] = a[i] * m + b;
    }
    float s = 0;
    for (int i = 0; i < 20; i++) s += a[i][0];
    sink = s;
}

static void read_all(const float *from, int times) {
    vector s[8] = {0};
    for (int t = 0; t < times; t++)
        for (size_t i = 0; i + 128 <= elements; i += 128) {
#pragma GCC unroll 8
            for (int k = 0; k < 8; k++) s[k] += *(const vector *)(from + i + 16 * k);
        }
    for (int k = 1; k < 8; k++) s[0] += s[k];
    sink = s[0][0];
}

static int times;
static void *work(void *unused) {
    (void)unused;
    float *mine = malloc(elements * sizeof *mine + 64);
    memset(mine, 0, elements * sizeof *mine + 64);
    if (times) read_all(mine, 1);
    pthread_barrier_wait(&start);
    if (times) read_all(mine, times); else multiply_add();
    pthread_barrier_wait(&end);
    free(mine);
    return NULL;
}

static double timed(int threads, size_t bytes, int repeats) {
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        pthread_t t[256];
        pthread_barrier_init(&start, NULL, threads + 1);
        pthread_barrier_init(&end, NULL, threads + 1);
        elements = bytes / threads / sizeof(float), times = repeats;
        for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, work, NULL);
        pthread_barrier_wait(&start);
        double begin = now();
        pthread_barrier_wait(&end);
        double passed = now() - begin;
        for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
        if (passed < best) best = passed;
    }
    return best;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1;
    if (threads < 1 || threads > 256) return 2;
    printf("{\"flops\": %.3e", threads * 2000000.0 * 20 * 16 * 2 / timed(threads, 4096, 0));
    printf(", \"near\": %.3e", 400.0 * threads * (1 << 20) / timed(threads, (size_t)threads << 20, 400));
    printf(", \"far\": %.3e}\n", 10.0 * (32 << 20) / timed(threads, 32 << 20, 10));
    return 0;
}

/* What the host tool and the guest runner agree on: fixed addresses and the layout of batch and result files.
 * Only macros, because the runner is assembly. All addresses are fixed so that a snippet has the same bytes and the
 * same RIP-relative and absolute operands in every run, on the oracle and under the translator. */
#ifndef PHYBIN_TESTS_DIFFERENTIAL_LAYOUT_H
#define PHYBIN_TESTS_DIFFERENTIAL_LAYOUT_H

#define RETURN_ADDRESS 0x0f000000 /* where snippets jump when they are done; start of the runner's .text */
#define BATCH_ADDRESS 0x10000000  /* the batch file, mapped readable and executable */
#define BATCH_BYTES 0x04000000    /* upper bound of its size */
#define ARENA_ADDRESS 0x20000000  /* one page of data; its neighbours are not mapped */
#define ARENA_BYTES 4096
#define PATTERN_BYTES 512 /* initial content of the arena: this much, repeated */

/* Batch header; the case records follow, then the code of the snippets. */
#define HEADER_COUNT 0   /* number of cases */
#define HEADER_DUMP 8    /* not 0: the arena follows every result record */
#define HEADER_FAULTS 16 /* not 0: the runner handles signals, and reports them as results */
#define HEADER_BYTES 64

/* One case: the state before the snippet. */
#define CASE_GPR 0 /* in encoding order: rax rcx rdx rbx rsp rbp rsi rdi r8.. */
#define CASE_FLAGS 128
#define CASE_CODE 136    /* address of the snippet */
#define CASE_OPTIONS 144 /* OPTION_* */
#define CASE_MXCSR 152
#define CASE_VECTOR 160 /* 16 registers, 32 bytes each */
#define CASE_FX 672     /* FXSAVE image, used with OPTION_FX */
#define CASE_PATTERN 1184
#define CASE_BYTES 1696

#define OPTION_FX 1  /* load and store the x87/MMX state */
#define OPTION_YMM 2 /* load and store 32 bytes of the vector registers, not 16 */

/* One result: the state after it. */
#define RESULT_GPR 0
#define RESULT_FLAGS 128
#define RESULT_DIGEST 136 /* of the arena */
#define RESULT_INDEX 144  /* number of the case */
#define RESULT_MXCSR 152
#define RESULT_VECTOR 160
#define RESULT_FX 672
#define RESULT_SIGNAL 1184        /* number, and si_code in the upper half; 0 if there was none */
#define RESULT_RIP 1192           /* where */
#define RESULT_FAULT_ADDRESS 1200 /* si_addr */
#define RESULT_BYTES 1216

#endif

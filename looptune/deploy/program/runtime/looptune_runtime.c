/* Run codelets on an NVIDIA GPU: see looptune_runtime.h.
 *
 *     the driver        libcuda, opened when first needed; which errors leave the device usable
 *     the device        its context, one stream, pinned memory for transfers, memory that is used again
 *     graphs            the launches of a call that is repeated, as one
 *     machine code      the best image of a kernel, loaded once
 *     arrays            copies of the host's arrays on the device, and which side is current
 *     selection         of the tuned version
 *     calls             and the public functions
 *     rounding, check   LOOPTUNE_CHECK: how far results move, and whether they are right
 *     report            LOOPTUNE_VERBOSE, LOOPTUNE_REPORT
 *
 * One lock serves all: a call holds it from its first transfer to its last, and not while loops run on the host.
 */
#if !defined(_POSIX_C_SOURCE) && !defined(_GNU_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "looptune_runtime.h"

#include <dlfcn.h>
#include <math.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Several objects of a program may define these functions: the linker takes all of them from one. */
#define LOOPTUNE_WEAK LOOPTUNE_HIDDEN __attribute__((weak))

#ifdef __cplusplus
extern "C" {
#endif

#include "looptune_driver.h"
#include "looptune_device.h"
#include "looptune_graphs.h"
#include "looptune_machine_code.h"
#include "looptune_arrays.h"
#include "looptune_selection.h"
#include "looptune_calls.h"
#include "looptune_rounding.h"
#include "looptune_pieces.h"
#include "looptune_transfers.h"
#include "looptune_caller.h"
#include "looptune_check.h"
#include "looptune_report.h"

#ifdef __cplusplus
}
#endif

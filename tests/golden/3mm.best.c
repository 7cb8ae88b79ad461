/* looptune transform
   loop 1: unroll 4, jam
   loop 4: unroll 4, jam
   loop 7: unroll 4, jam
   loop 2: unroll 4, jam
   loop 5: unroll 4, jam
   loop 8: unroll 4, jam
   loop 3: rfactor 4
   loop 6: rfactor 4
   loop 9: rfactor 4
   loop 3: tile k:16
   loop 6: tile k:16
   loop 9: tile k:16
   loop 3: stage A, B, buffers 2, unroll 16
   loop 6: stage C, D, buffers 2, unroll 16
   loop 9: stage E, F, buffers 2, unroll 16
   codelet: grid blocksize 16x8
   added up in another order than in the original: +:E (67:17)
   added up in another order than in the original: +:F (76:17)
   added up in another order than in the original: +:G (85:17)
   assumed: these do not overlap: A and E, A and F, A and G, B and E, B and F, B and G, C and E, C and F, C and G, D and E, D and F, D and G, E and F, E and G, F and G
*/
#define NI 512
#define NJ 512
#define NK 512
#define NL 512
#define NM 512
/* E = A * B, F = C * D, G = E * F: three matrix products, the third of which needs the whole of the other two.
 * A of ni x nk, B of nk x nj, C of nj x nm, D of nm x nl, E of ni x nj, F of nj x nl and G of ni x nl elements,
 * row-major.
 *
 * Source: 3MM of PolyBench/GPU 1.0 (Grauer-Gray and Pouchet): its three loop nests, its initial values, its 512 in
 * every direction, of float; tuned in Grauer-Gray et al., "Auto-tuning a High-Level Language Targeted to GPU Codes",
 * InPar 2012. There each nest is a codelet of its own and they share E and F; here they are one.
 *
 *     gcc -O2 polybench/3mm.c -lm && ./a.out          prints the sizes, checksums and five elements of G
 *     -DDUMP                                          prints every element of E, of F and of G, one row a line
 *     -DTIME                                          prints the seconds the codelet took, to stderr
 *     -DMINI_DATASET (32) SMALL (128) MEDIUM (512) PAPER (512, the default) STANDARD (1024) LARGE (2000)
 *     EXTRALARGE (4000)
 *     -DNI=.. -DNJ=.. -DNK=.. -DNL=.. -DNM=.. -DDATA_TYPE=double      any sizes, either type
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(MINI_DATASET)
#define SIZE 32
#elif defined(SMALL_DATASET)
#define SIZE 128
#elif defined(MEDIUM_DATASET)
#define SIZE 512
#elif defined(STANDARD_DATASET)
#define SIZE 1024
#elif defined(LARGE_DATASET)
#define SIZE 2000
#elif defined(EXTRALARGE_DATASET)
#define SIZE 4000
#else /* PAPER_DATASET */
#define SIZE 512
#endif

#ifndef NI
#endif
#ifndef NJ
#endif
#ifndef NK
#endif
#ifndef NL
#endif
#ifndef NM
#endif
#ifndef DATA_TYPE
#define DATA_TYPE float
#endif

#pragma hmpp mm3 codelet, target=CUDA, args[E;F;G].io=out
static void mm3(int ni, int nj, int nk, int nl, int nm, DATA_TYPE A[ni][nk], DATA_TYPE B[nk][nj],
                DATA_TYPE C[nj][nm], DATA_TYPE D[nm][nl], DATA_TYPE E[ni][nj], DATA_TYPE F[nj][nl],
                DATA_TYPE G[ni][nl])
{
    int i, j, k;

    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    for (int i = 0; i < ni / 4; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nj / 4; j++) {
        E[4 * i][4 * j] = 0;
        E[4 * i + 1][4 * j] = 0;
        E[4 * i + 2][4 * j] = 0;
        E[4 * i + 3][4 * j] = 0;
        E[4 * i][4 * j + 1] = 0;
        E[4 * i + 1][4 * j + 1] = 0;
        E[4 * i + 2][4 * j + 1] = 0;
        E[4 * i + 3][4 * j + 1] = 0;
        E[4 * i][4 * j + 2] = 0;
        E[4 * i + 1][4 * j + 2] = 0;
        E[4 * i + 2][4 * j + 2] = 0;
        E[4 * i + 3][4 * j + 2] = 0;
        E[4 * i][4 * j + 3] = 0;
        E[4 * i + 1][4 * j + 3] = 0;
        E[4 * i + 2][4 * j + 3] = 0;
        E[4 * i + 3][4 * j + 3] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k = 0; outer_k < (nk + 15) / 16; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, unroll 16
          for (int k = 16 * outer_k; k < (16 * outer_k + 16 < nk ? 16 * outer_k + 16 : nk); k++) {
            E[4 * i][4 * j] += A[4 * i][k] * B[k][4 * j];
            E[4 * i + 1][4 * j] += A[4 * i + 1][k] * B[k][4 * j];
            E[4 * i + 2][4 * j] += A[4 * i + 2][k] * B[k][4 * j];
            E[4 * i + 3][4 * j] += A[4 * i + 3][k] * B[k][4 * j];
            E[4 * i][4 * j + 1] += A[4 * i][k] * B[k][4 * j + 1];
            E[4 * i + 1][4 * j + 1] += A[4 * i + 1][k] * B[k][4 * j + 1];
            E[4 * i + 2][4 * j + 1] += A[4 * i + 2][k] * B[k][4 * j + 1];
            E[4 * i + 3][4 * j + 1] += A[4 * i + 3][k] * B[k][4 * j + 1];
            E[4 * i][4 * j + 2] += A[4 * i][k] * B[k][4 * j + 2];
            E[4 * i + 1][4 * j + 2] += A[4 * i + 1][k] * B[k][4 * j + 2];
            E[4 * i + 2][4 * j + 2] += A[4 * i + 2][k] * B[k][4 * j + 2];
            E[4 * i + 3][4 * j + 2] += A[4 * i + 3][k] * B[k][4 * j + 2];
            E[4 * i][4 * j + 3] += A[4 * i][k] * B[k][4 * j + 3];
            E[4 * i + 1][4 * j + 3] += A[4 * i + 1][k] * B[k][4 * j + 3];
            E[4 * i + 2][4 * j + 3] += A[4 * i + 2][k] * B[k][4 * j + 3];
            E[4 * i + 3][4 * j + 3] += A[4 * i + 3][k] * B[k][4 * j + 3];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nj - nj % 4; j < nj; j++) {
        E[4 * i][j] = 0;
        E[4 * i + 1][j] = 0;
        E[4 * i + 2][j] = 0;
        E[4 * i + 3][j] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k = 0; outer_k < (nk + 15) / 16; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, unroll 16
          for (int k = 16 * outer_k; k < (16 * outer_k + 16 < nk ? 16 * outer_k + 16 : nk); k++) {
            E[4 * i][j] += A[4 * i][k] * B[k][j];
            E[4 * i + 1][j] += A[4 * i + 1][k] * B[k][j];
            E[4 * i + 2][j] += A[4 * i + 2][k] * B[k][j];
            E[4 * i + 3][j] += A[4 * i + 3][k] * B[k][j];
          }
        }
      }
    }
    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    for (int i = ni - ni % 4; i < ni; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nj / 4; j++) {
        E[i][4 * j] = 0;
        E[i][4 * j + 1] = 0;
        E[i][4 * j + 2] = 0;
        E[i][4 * j + 3] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k = 0; outer_k < (nk + 15) / 16; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, unroll 16
          for (int k = 16 * outer_k; k < (16 * outer_k + 16 < nk ? 16 * outer_k + 16 : nk); k++) {
            E[i][4 * j] += A[i][k] * B[k][4 * j];
            E[i][4 * j + 1] += A[i][k] * B[k][4 * j + 1];
            E[i][4 * j + 2] += A[i][k] * B[k][4 * j + 2];
            E[i][4 * j + 3] += A[i][k] * B[k][4 * j + 3];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nj - nj % 4; j < nj; j++) {
        E[i][j] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k = 0; outer_k < (nk + 15) / 16; outer_k++) {
          #pragma hmppcg noParallel
          #pragma looptune stage A, B, buffers 2, unroll 16
          for (int k = 16 * outer_k; k < (16 * outer_k + 16 < nk ? 16 * outer_k + 16 : nk); k++) {
            E[i][j] += A[i][k] * B[k][j];
          }
        }
      }
    }
    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    for (int i = 0; i < nj / 4; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nl / 4; j++) {
        F[4 * i][4 * j] = 0;
        F[4 * i + 1][4 * j] = 0;
        F[4 * i + 2][4 * j] = 0;
        F[4 * i + 3][4 * j] = 0;
        F[4 * i][4 * j + 1] = 0;
        F[4 * i + 1][4 * j + 1] = 0;
        F[4 * i + 2][4 * j + 1] = 0;
        F[4 * i + 3][4 * j + 1] = 0;
        F[4 * i][4 * j + 2] = 0;
        F[4 * i + 1][4 * j + 2] = 0;
        F[4 * i + 2][4 * j + 2] = 0;
        F[4 * i + 3][4 * j + 2] = 0;
        F[4 * i][4 * j + 3] = 0;
        F[4 * i + 1][4 * j + 3] = 0;
        F[4 * i + 2][4 * j + 3] = 0;
        F[4 * i + 3][4 * j + 3] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k_2 = 0; outer_k_2 < (nm + 15) / 16; outer_k_2++) {
          #pragma hmppcg noParallel
          #pragma looptune stage C, D, buffers 2, unroll 16
          for (int k = 16 * outer_k_2; k < (16 * outer_k_2 + 16 < nm ? 16 * outer_k_2 + 16 : nm); k++) {
            F[4 * i][4 * j] += C[4 * i][k] * D[k][4 * j];
            F[4 * i + 1][4 * j] += C[4 * i + 1][k] * D[k][4 * j];
            F[4 * i + 2][4 * j] += C[4 * i + 2][k] * D[k][4 * j];
            F[4 * i + 3][4 * j] += C[4 * i + 3][k] * D[k][4 * j];
            F[4 * i][4 * j + 1] += C[4 * i][k] * D[k][4 * j + 1];
            F[4 * i + 1][4 * j + 1] += C[4 * i + 1][k] * D[k][4 * j + 1];
            F[4 * i + 2][4 * j + 1] += C[4 * i + 2][k] * D[k][4 * j + 1];
            F[4 * i + 3][4 * j + 1] += C[4 * i + 3][k] * D[k][4 * j + 1];
            F[4 * i][4 * j + 2] += C[4 * i][k] * D[k][4 * j + 2];
            F[4 * i + 1][4 * j + 2] += C[4 * i + 1][k] * D[k][4 * j + 2];
            F[4 * i + 2][4 * j + 2] += C[4 * i + 2][k] * D[k][4 * j + 2];
            F[4 * i + 3][4 * j + 2] += C[4 * i + 3][k] * D[k][4 * j + 2];
            F[4 * i][4 * j + 3] += C[4 * i][k] * D[k][4 * j + 3];
            F[4 * i + 1][4 * j + 3] += C[4 * i + 1][k] * D[k][4 * j + 3];
            F[4 * i + 2][4 * j + 3] += C[4 * i + 2][k] * D[k][4 * j + 3];
            F[4 * i + 3][4 * j + 3] += C[4 * i + 3][k] * D[k][4 * j + 3];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nl - nl % 4; j < nl; j++) {
        F[4 * i][j] = 0;
        F[4 * i + 1][j] = 0;
        F[4 * i + 2][j] = 0;
        F[4 * i + 3][j] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k_2 = 0; outer_k_2 < (nm + 15) / 16; outer_k_2++) {
          #pragma hmppcg noParallel
          #pragma looptune stage C, D, buffers 2, unroll 16
          for (int k = 16 * outer_k_2; k < (16 * outer_k_2 + 16 < nm ? 16 * outer_k_2 + 16 : nm); k++) {
            F[4 * i][j] += C[4 * i][k] * D[k][j];
            F[4 * i + 1][j] += C[4 * i + 1][k] * D[k][j];
            F[4 * i + 2][j] += C[4 * i + 2][k] * D[k][j];
            F[4 * i + 3][j] += C[4 * i + 3][k] * D[k][j];
          }
        }
      }
    }
    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    for (int i = nj - nj % 4; i < nj; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nl / 4; j++) {
        F[i][4 * j] = 0;
        F[i][4 * j + 1] = 0;
        F[i][4 * j + 2] = 0;
        F[i][4 * j + 3] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k_2 = 0; outer_k_2 < (nm + 15) / 16; outer_k_2++) {
          #pragma hmppcg noParallel
          #pragma looptune stage C, D, buffers 2, unroll 16
          for (int k = 16 * outer_k_2; k < (16 * outer_k_2 + 16 < nm ? 16 * outer_k_2 + 16 : nm); k++) {
            F[i][4 * j] += C[i][k] * D[k][4 * j];
            F[i][4 * j + 1] += C[i][k] * D[k][4 * j + 1];
            F[i][4 * j + 2] += C[i][k] * D[k][4 * j + 2];
            F[i][4 * j + 3] += C[i][k] * D[k][4 * j + 3];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nl - nl % 4; j < nl; j++) {
        F[i][j] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k_2 = 0; outer_k_2 < (nm + 15) / 16; outer_k_2++) {
          #pragma hmppcg noParallel
          #pragma looptune stage C, D, buffers 2, unroll 16
          for (int k = 16 * outer_k_2; k < (16 * outer_k_2 + 16 < nm ? 16 * outer_k_2 + 16 : nm); k++) {
            F[i][j] += C[i][k] * D[k][j];
          }
        }
      }
    }
    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    for (int i = 0; i < ni / 4; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nl / 4; j++) {
        G[4 * i][4 * j] = 0;
        G[4 * i + 1][4 * j] = 0;
        G[4 * i + 2][4 * j] = 0;
        G[4 * i + 3][4 * j] = 0;
        G[4 * i][4 * j + 1] = 0;
        G[4 * i + 1][4 * j + 1] = 0;
        G[4 * i + 2][4 * j + 1] = 0;
        G[4 * i + 3][4 * j + 1] = 0;
        G[4 * i][4 * j + 2] = 0;
        G[4 * i + 1][4 * j + 2] = 0;
        G[4 * i + 2][4 * j + 2] = 0;
        G[4 * i + 3][4 * j + 2] = 0;
        G[4 * i][4 * j + 3] = 0;
        G[4 * i + 1][4 * j + 3] = 0;
        G[4 * i + 2][4 * j + 3] = 0;
        G[4 * i + 3][4 * j + 3] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k_3 = 0; outer_k_3 < (nj + 15) / 16; outer_k_3++) {
          #pragma hmppcg noParallel
          #pragma looptune stage E, F, buffers 2, unroll 16
          for (int k = 16 * outer_k_3; k < (16 * outer_k_3 + 16 < nj ? 16 * outer_k_3 + 16 : nj); k++) {
            G[4 * i][4 * j] += E[4 * i][k] * F[k][4 * j];
            G[4 * i + 1][4 * j] += E[4 * i + 1][k] * F[k][4 * j];
            G[4 * i + 2][4 * j] += E[4 * i + 2][k] * F[k][4 * j];
            G[4 * i + 3][4 * j] += E[4 * i + 3][k] * F[k][4 * j];
            G[4 * i][4 * j + 1] += E[4 * i][k] * F[k][4 * j + 1];
            G[4 * i + 1][4 * j + 1] += E[4 * i + 1][k] * F[k][4 * j + 1];
            G[4 * i + 2][4 * j + 1] += E[4 * i + 2][k] * F[k][4 * j + 1];
            G[4 * i + 3][4 * j + 1] += E[4 * i + 3][k] * F[k][4 * j + 1];
            G[4 * i][4 * j + 2] += E[4 * i][k] * F[k][4 * j + 2];
            G[4 * i + 1][4 * j + 2] += E[4 * i + 1][k] * F[k][4 * j + 2];
            G[4 * i + 2][4 * j + 2] += E[4 * i + 2][k] * F[k][4 * j + 2];
            G[4 * i + 3][4 * j + 2] += E[4 * i + 3][k] * F[k][4 * j + 2];
            G[4 * i][4 * j + 3] += E[4 * i][k] * F[k][4 * j + 3];
            G[4 * i + 1][4 * j + 3] += E[4 * i + 1][k] * F[k][4 * j + 3];
            G[4 * i + 2][4 * j + 3] += E[4 * i + 2][k] * F[k][4 * j + 3];
            G[4 * i + 3][4 * j + 3] += E[4 * i + 3][k] * F[k][4 * j + 3];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nl - nl % 4; j < nl; j++) {
        G[4 * i][j] = 0;
        G[4 * i + 1][j] = 0;
        G[4 * i + 2][j] = 0;
        G[4 * i + 3][j] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k_3 = 0; outer_k_3 < (nj + 15) / 16; outer_k_3++) {
          #pragma hmppcg noParallel
          #pragma looptune stage E, F, buffers 2, unroll 16
          for (int k = 16 * outer_k_3; k < (16 * outer_k_3 + 16 < nj ? 16 * outer_k_3 + 16 : nj); k++) {
            G[4 * i][j] += E[4 * i][k] * F[k][j];
            G[4 * i + 1][j] += E[4 * i + 1][k] * F[k][j];
            G[4 * i + 2][j] += E[4 * i + 2][k] * F[k][j];
            G[4 * i + 3][j] += E[4 * i + 3][k] * F[k][j];
          }
        }
      }
    }
    #pragma hmppcg parallel
    #pragma hmppcg grid blocksize 16x8
    for (int i = ni - ni % 4; i < ni; i++) {
      #pragma hmppcg parallel
      for (int j = 0; j < nl / 4; j++) {
        G[i][4 * j] = 0;
        G[i][4 * j + 1] = 0;
        G[i][4 * j + 2] = 0;
        G[i][4 * j + 3] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k_3 = 0; outer_k_3 < (nj + 15) / 16; outer_k_3++) {
          #pragma hmppcg noParallel
          #pragma looptune stage E, F, buffers 2, unroll 16
          for (int k = 16 * outer_k_3; k < (16 * outer_k_3 + 16 < nj ? 16 * outer_k_3 + 16 : nj); k++) {
            G[i][4 * j] += E[i][k] * F[k][4 * j];
            G[i][4 * j + 1] += E[i][k] * F[k][4 * j + 1];
            G[i][4 * j + 2] += E[i][k] * F[k][4 * j + 2];
            G[i][4 * j + 3] += E[i][k] * F[k][4 * j + 3];
          }
        }
      }
      #pragma hmppcg parallel
      for (int j = nl - nl % 4; j < nl; j++) {
        G[i][j] = 0;
        #pragma hmppcg noParallel
        #pragma looptune rfactor 4
        for (int outer_k_3 = 0; outer_k_3 < (nj + 15) / 16; outer_k_3++) {
          #pragma hmppcg noParallel
          #pragma looptune stage E, F, buffers 2, unroll 16
          for (int k = 16 * outer_k_3; k < (16 * outer_k_3 + 16 < nj ? 16 * outer_k_3 + 16 : nj); k++) {
            G[i][j] += E[i][k] * F[k][j];
          }
        }
      }
    }
}

static void init(int ni, int nj, int nk, int nl, int nm, DATA_TYPE A[ni][nk], DATA_TYPE B[nk][nj],
                 DATA_TYPE C[nj][nm], DATA_TYPE D[nm][nl])
{
    int i, j;

    for (i = 0; i < ni; i++)
        for (j = 0; j < nk; j++)
            A[i][j] = ((DATA_TYPE)i * j) / ni;
    for (i = 0; i < nk; i++)
        for (j = 0; j < nj; j++)
            B[i][j] = ((DATA_TYPE)i * (j + 1)) / nj;
    for (i = 0; i < nj; i++)
        for (j = 0; j < nm; j++)
            C[i][j] = ((DATA_TYPE)i * (j + 3)) / nl;
    for (i = 0; i < nm; i++)
        for (j = 0; j < nl; j++)
            D[i][j] = ((DATA_TYPE)i * (j + 2)) / nk;
}

/* The checksum weighs each element by its place, so that two swapped elements change it. */
static double checksum(int rows, int cols, DATA_TYPE X[rows][cols])
{
    double sum = 0;
    int i, j;

    for (i = 0; i < rows; i++) {
        for (j = 0; j < cols; j++) {
            sum += (double)X[i][j] * (1 + (3 * i + 7 * j) % 11);
#ifdef DUMP
            printf("%.9g%c", (double)X[i][j], j + 1 < cols ? ' ' : '\n');
#endif
        }
    }
    return sum;
}

static void print(int ni, int nj, int nk, int nl, int nm, DATA_TYPE E[ni][nj], DATA_TYPE F[nj][nl],
                  DATA_TYPE G[ni][nl])
{
    double first = checksum(ni, nj, E), second = checksum(nj, nl, F), third = checksum(ni, nl, G);

    printf("mm3 ni=%d nj=%d nk=%d nl=%d nm=%d checksum=%.6e of E %.6e of F %.6e\n", ni, nj, nk, nl, nm, third, first,
           second);
    printf("corners %.6e %.6e %.6e %.6e middle %.6e\n", (double)G[0][0], (double)G[0][nl - 1], (double)G[ni - 1][0],
           (double)G[ni - 1][nl - 1], (double)G[ni / 2][nl / 2]);
}

int main(void)
{
    int ni = NI, nj = NJ, nk = NK, nl = NL, nm = NM;
    DATA_TYPE(*A)[nk] = malloc(sizeof(DATA_TYPE) * ni * nk);
    DATA_TYPE(*B)[nj] = malloc(sizeof(DATA_TYPE) * nk * nj);
    DATA_TYPE(*C)[nm] = malloc(sizeof(DATA_TYPE) * nj * nm);
    DATA_TYPE(*D)[nl] = malloc(sizeof(DATA_TYPE) * nm * nl);
    DATA_TYPE(*E)[nj] = malloc(sizeof(DATA_TYPE) * ni * nj);
    DATA_TYPE(*F)[nl] = malloc(sizeof(DATA_TYPE) * nj * nl);
    DATA_TYPE(*G)[nl] = malloc(sizeof(DATA_TYPE) * ni * nl);

    if (!A || !B || !C || !D || !E || !F || !G) {
        fprintf(stderr, "mm3: no memory for %d x %d x %d x %d x %d\n", ni, nj, nk, nl, nm);
        return 1;
    }
    init(ni, nj, nk, nl, nm, A, B, C, D);
#ifdef TIME
    clock_t start = clock();
#endif
#pragma hmpp mm3 callsite
    mm3(ni, nj, nk, nl, nm, A, B, C, D, E, F, G);
#ifdef TIME
    fprintf(stderr, "%.6f s\n", (double)(clock() - start) / CLOCKS_PER_SEC);
#endif
    print(ni, nj, nk, nl, nm, E, F, G);
    free(A);
    free(B);
    free(C);
    free(D);
    free(E);
    free(F);
    free(G);
    return 0;
}

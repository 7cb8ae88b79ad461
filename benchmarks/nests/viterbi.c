/* The best path of a hidden Markov model, its predecessors kept. */
#define T 2000
#define S 512
#pragma hmpp viterbi codelet, target=CUDA
void viterbi(float score[T][S], int from[T][S], const float trans[S][S], const float emit[T][S])
{
    for (int t = 1; t < T; t++)
        for (int s = 0; s < S; s++) {
            float best = -1e30f;
            int at = 0;
            for (int p = 0; p < S; p++) {
                float v = score[t - 1][p] + trans[p][s];
                if (v > best) { best = v; at = p; }
            }
            score[t][s] = best + emit[t][s];
            from[t][s] = at;
        }
}

#pragma hmpp shift codelet, target=CUDA, args[x].io=inout
extern void shift(int n, double x[n], double by);
void scaleup(int n, double *x, double a);

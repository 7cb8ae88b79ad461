"""Small kernels of many kinds."""

from __future__ import annotations

from tests.programs.program import Program

KERNELS = (
    Program(
        "an unsigned char as an index",
        """
void f(int n, signed char s[n], int h[256], unsigned char b[n]) {
  for (int i=0;i<n;i++) h[(unsigned char)s[i]]++;
  for (int i=0;i<n;i++) h[b[i] - 0]+=2;
}
""",
        {"n": 20},
    ),
    Program(
        "sizes of type size_t",
        """
#include <stddef.h>
void f(size_t n, float a[n], float b[n]) {
  for (size_t i=0;i+1<n;i++) a[i]=b[i+1];
  for (size_t i=0;i<n-1;i++) a[i]+=b[n-1-i];
}
""",
        {"n": 9},
    ),
    Program(
        "an array of each iteration",
        """
void f(int n, float a[n][4], float b[n][4]) {
  for (int i=0;i<n;i++){ float t[2][4];
    for(int k=0;k<4;k++){t[0][k]=a[i][k];t[1][k]=a[i][3-k];} for(int k=0;k<4;k++) b[i][k]=t[0][k]*t[1][k]; }
}
""",
        {"n": 7},
    ),
    Program(
        "maximum and count",
        """
void f(int n, int m, double a[n][m], double *mx, int *cnt) {
  *mx=a[0][0];
  *cnt=0;
  for (int i=0;i<n;i++) for (int j=0;j<m;j++) { if (a[i][j]>*mx) *mx=a[i][j]; *cnt+=a[i][j]>0; }
}
""",
        {"n": 6, "m": 5},
        1e-12,
    ),
    Program(
        "long loop variables",
        """
void f(long n, long m, double a[n][m]) {
  for (long i=0;i<n;i++) for (long j=0;j<m;j++) a[i][j]+=i*m+j;
}
""",
        {"n": 6, "m": 5},
        1e-12,
    ),
    Program(
        "a stencil with loops inside",
        """
void f(int n, int m, float in[n][m], float out[n][m], float w[3][3]) {
  for (int i=1;i<n-1;i++) for(int j=1;j<m-1;j++){ float s=0; for(int p=-1;p<=1;p++) for(int q=-1;q<=1;q++)
    s+=w[p+1][q+1]*in[i+p][j+q]; out[i][j]=s; }
}
""",
        {"n": 8, "m": 40},
    ),
    Program(
        "a recurrence of scalars",
        """
void f(int n, double x[n]) {
  double a=1,b=1,t;
  for (int i=0;i<n;i++) { t=a+b; a=b; b=t; x[i]=t; }
}
""",
        {"n": 12},
        1e-12,
    ),
    Program(
        "a loop from minus n",
        """
void f(int n, float x[2*n+1]) {
  for (int i=-n;i<=n;i++) x[i+n]=i*i;
}
""",
        {"n": 4},
    ),
    Program(
        "a step that is a parameter",
        """
void f(int n, int s, float x[n]) {
  for (int i=0;i<n;i+=s) x[i]=i;
  for (int i=n-1;i>=0;i-=s) x[i]+=1;
}
""",
        {"n": 13, "s": 3},
    ),
    Program(
        "shortest paths",
        """
void f(int n, int p[n][n]) {
  for (int k=0;k<n;k++) for(int i=0;i<n;i++) for(int j=0;j<n;j++)
    p[i][j]=p[i][j]<p[i][k]+p[k][j]?p[i][j]:p[i][k]+p[k][j];
}
""",
        {"n": 7},
    ),
    Program(
        "diagonals",
        """
#define MIN(a,b) ((a)<(b)?(a):(b))
#define MAX(a,b) ((a)>(b)?(a):(b))
void f(int n, int m, float a[n][m]) {
  for (int d=0;d<n+m-1;d++) for (int i=MAX(0,d-m+1);i<MIN(n,d+1);i++) a[i][d-i]+=d;
}
""",
        {"n": 6, "m": 4},
    ),
    Program(
        "a stencil in place",
        """
void f(int t, int n, double A[n][n]) {
  for (int s=0;s<t;s++) for(int i=1;i<n-1;i++) for(int j=1;j<n-1;j++)





    A[i][j]=(A[i-1][j-1]+A[i-1][j]+A[i-1][j+1]+A[i][j-1]+A[i][j]+A[i][j+1]+A[i+1][j-1]+A[i+1][j]+A[i+1][j+1])/9.0;
}
""",
        {"t": 2, "n": 7},
        1e-12,
    ),
    Program(
        "greatest common divisors",
        """
void f(int n, int x[n]) {
  for (int i=0;i<n;i++) { int a=x[i]<0?-x[i]:x[i], b=12; while (b) { int t=a%b; a=b; b=t; } x[i]=a; }
}
""",
        {"n": 9},
    ),
    Program(
        "four dimensions",
        """
void f(int n, float a[n][3][n][2]) {
  for (int i=0;i<n;i++) for (int j=0;j<3;j++) for (int k=0;k<n;k++) for (int l=0;l<2;l++)
    a[i][j][k][l]=i+10*j+100*k+1000*l;
}
""",
        {"n": 3},
    ),
    Program(
        "a bound that depends on data",
        """
void f(int n, int k[n], float a[n], float b[n]) {
  for (int i=0;i<n;i++) { int m = k[i] > 0 ? k[i] : 0; float s=0; for (int j=0;j<m;j++) s+=a[j]; b[i]=s; }
}
""",
        {"n": 12},
    ),
    Program(
        "a hash",
        """
void f(int n, long long x[n]) {
  long long m=1000000007LL;
  long long h=1;
  for (int i=0;i<n;i++) { h=(h*31+x[i])%m; x[i]=h; }
}
""",
        {"n": 12},
    ),
    Program(
        "one variable, signed and unsigned",
        """
void f(int n, float a[n]) {
  for (int i=-2;i<3;i++) a[i+2]+=i;
  for (int i=0;i<n;i++) { for (int j=-1;j<1;j++) a[i]+=j; for (int j=0;j<2;j++) a[i]-=j; }
}
""",
        {"n": 8},
    ),
    Program(
        "a host loop that doubles",
        """
void f(int n, float a[n][n]) {
  for (int s=1;s<n;s*=2) for (int i=0;i<n;i++) a[i][i]+=s;
  for (int d=n-1;d>0;d-=2) for (int i=0;i<d;i++) a[d][i]+=a[d-1][i];
}
""",
        {"n": 9},
    ),
    Program(
        "bytes of an image",
        """
void f(int h, int w, unsigned char a[h][w], unsigned char b[h][w]) {
  for (int y=1;y<h-1;y++) for (int x=1;x<w-1;x++) { int s=0; for (int d=-1;d<=1;d++) s+=a[y+d][x]; s/=3;
    b[y][x]=s>255?255:s; }
}
""",
        {"h": 6, "w": 7},
    ),
    Program(
        "an array of each iteration's own",
        """
        void f(int n, int m, float A[n][m][5], float B[n][m][5]) {
          for (int i = 0; i < n; i++)
            for (int j = 0; j < m; j++) {
              float h[5], least = 1000;
              for (int d = 0; d < 5; d++) {
                h[d] = A[i][j][d] + d;
                least = h[d] < least ? h[d] : least;
              }
              for (int d = 1; d < 5; d++)
                if (h[d - 1] + 1 < h[d]) h[d] = h[d - 1] + 1;
              for (int d = 3; d >= 0; d--)
                h[d] = h[d + 1] + 1 < h[d] ? h[d + 1] + 1 : h[d];
              for (int d = 0; d < 5; d++) B[i][j][d] = h[d] - least;
            }
        }""",
        {"n": 5, "m": 37},
    ),
    Program(
        "arrays of an iteration's own where data decide, counted and sorted",
        """
        void f(int n, double x[n], int y[n][6], double z[n]) {
          for (int i = 0; i < n; i++) {
            int count[4];
            if (x[i] > 0) for (int p = 0; p < 4; p++) count[p] = p;
            if (x[i] > 0) for (int k = 0; k < 6; k++) count[y[i][k] & 3] += 1;
            if (x[i] > 0) for (int p = 0; p < 4; p++) z[i] += count[p] * (p + 1);
            double two[2][3];
            for (int p = 0; p < 2; p++) for (int q = 0; q < 3; q++) two[p][q] = x[i] * q - p;
            for (int q = 0; q < 2; q++) two[1][q + 1] += two[1][q];
            z[i] += two[1][2];
          }
        }""",
        {"n": 41},
    ),
    Program(
        "a sum over what an iteration computes in its own array",
        """
        void f(int n, double x[n + 2], double out[1]) {
          double sum = 0;
          for (int i = 0; i < n; i++) {
            double w[3];
            for (int p = 0; p < 3; p++) w[p] = x[i + p];
            for (int p = 1; p < 3; p++) w[p] = w[p] > w[p - 1] ? w[p] : w[p - 1];
            sum += w[2];
          }
          out[0] = sum;
        }""",
        {"n": 300},
        1e-12,
    ),
    Program(
        "a local array filled side by side",
        """
void f(int n, int a[n], int b[n]) {
  int z[n], m = 0;
  for (int t=1;t<4;t++) {
    for (int i=0;i<n;i++) z[i]=a[n-1-i]+t;
    for (int i=0;i<n;i++) a[i]=z[i]*2-b[i];
    for (int i=0;i<n;i++) if (a[i]>m) m=a[i];
    b[t]=m;
  }
}
""",
        {"n": 9},
    ),
    Program(
        "a double sum of floats",
        """
void f(int n, float a[n][n], float x[n], float y[n]) {
  for (int i=0;i<n;i++) { double s=0.0; for(int j=0;j<n;j++) s+=(double)a[i][j]*x[j]; y[i]=(float)s; }
}
""",
        {"n": 8},
        1e-12,
    ),
)

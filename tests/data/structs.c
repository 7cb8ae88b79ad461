// px  sizes: n=9; loops: parallel
typedef struct { float r, g, b; } px;
void f(int n, const px *in, float *out) { for (int i = 0; i < n; i++) out[i] = 0.3f * in[i].r + 0.6f * in[i].g + 0.1f * in[i].b; }
//----
// complexs  sizes: n=9; loops: parallel
typedef struct { double re, im; } cplx;
void f(int n, const cplx *a, const cplx *b, cplx *c) { for (int i = 0; i < n; i++) { c[i].re = a[i].re * b[i].re - a[i].im * b[i].im; c[i].im = a[i].re * b[i].im + a[i].im * b[i].re; } }
//----
// complexlocal  sizes: n=9; loops: parallel
typedef struct { double re, im; } cplx;
void f(int n, cplx *a, const cplx *b) { for (int i = 0; i < n; i++) { cplx t = a[i], u; u.re = t.re - b[i].im; u.im = t.im * 2; a[i] = u; } }
//----
// grid  sizes: g_nx=5 g_ny=6; shapes: g_data=40 g_out=40; loops: parallel parallel
struct grid { int nx, ny; double *data; double *out; };
void f(struct grid *g) { for (int i = 1; i < g->nx - 1; i++) for (int j = 1; j < g->ny - 1; j++) g->out[i * g->ny + j] = 0.25 * (g->data[(i - 1) * g->ny + j] + g->data[(i + 1) * g->ny + j]); }
//----
// matrix  sizes: a_rows=4 a_cols=5 b_cols=3 c_cols=3; shapes: a_v=20 b_v=15 c_v=12; loops: parallel parallel reduction
typedef struct { int rows, cols; float *v; } matrix;
void mul(const matrix *a, const matrix *b, matrix *c) { for (int i = 0; i < a->rows; i++) for (int j = 0; j < b->cols; j++) { float s = 0; for (int k = 0; k < a->cols; k++) s += a->v[i * a->cols + k] * b->v[k * b->cols + j]; c->v[i * c->cols + j] = s; } }
//----
// byvalue  sizes: m_n=6; shapes: m_v=20; loops: parallel
struct vec { int n; double *v; };
void scale(struct vec m, double s) { for (int i = 0; i < m.n; i++) m.v[i] *= s; }
//----
// fieldarray  sizes: n=4; loops: parallel
struct s { int k; float a[10]; float b[10]; };
void f(struct s *p, int n) { for (int i = 0; i < n; i++) p->a[i] = p->b[i] + i; }
//----
// globalstruct  sizes: n=4 S_k=3; loops: parallel
struct s { int k; float a[10]; float b[10]; } S;
void f(int n) { for (int i = 0; i < n; i++) S.a[i] = S.b[i] + S.k; }
//----
// gccs421  sizes: n=4; loops: parallel
struct GlobalData { __attribute__((aligned(64))) float a[100]; int pad[3]; float b[100]; } global_data;
void f(int n) { for (int i = 0; i < n; i++) global_data.a[i] = global_data.b[i + 1]; }
//----
// counter  sizes: n=9; shapes: x=9; loops: reduction
struct acc { double sum; int n; };
void f(int n, const double *x, struct acc *a) { a->sum = 0; for (int i = 0; i < n; i++) a->sum += x[i]; a->n = n; }
//----
// particles  sizes: n=7 dt=0.1; loops: parallel parallel
typedef struct { double pos[3]; double vel[3]; double mass; } part;
void step(int n, part *p, double dt) { for (int i = 0; i < n; i++) for (int d = 0; d < 3; d++) p[i].pos[d] += dt * p[i].vel[d] / p[i].mass; }
//----
// nbody  sizes: n=7; loops: parallel reduction
typedef struct { float x, y, z, vx, vy, vz; } body;
#include <math.h>
void force(int n, body *p, float dt) { for (int i = 0; i < n; i++) { float fx = 0, fy = 0, fz = 0; for (int j = 0; j < n; j++) { float dx = p[j].x - p[i].x, dy = p[j].y - p[i].y, dz = p[j].z - p[i].z; float d = dx * dx + dy * dy + dz * dz + 1e-9f; float inv = 1.0f / sqrtf(d); fx += dx * inv * inv * inv; fy += dy * inv; fz += dz * inv; } p[i].vx += dt * fx; p[i].vy += dt * fy; p[i].vz += dt * fz; } }
//----
// nested  sizes: n=7; loops: parallel
typedef struct { float x, y; } v2; typedef struct { v2 a, b; } seg;
void len(int n, const seg *s, float *o) { for (int i = 0; i < n; i++) { float dx = s[i].b.x - s[i].a.x, dy = s[i].b.y - s[i].a.y; o[i] = dx * dx + dy * dy; } }
//----
// nestedcopy  sizes: n=7; loops: parallel
typedef struct { float x, y; } v2; typedef struct { v2 a, b; } seg;
void swap(int n, seg *s) { for (int i = 0; i < n; i++) { v2 t = s[i].a; s[i].a = s[i].b; s[i].b = t; } }
//----
// walkstruct  sizes: n=7; shapes: p=7x3 o=7; loops: parallel
typedef struct { unsigned char r, g, b; } rgb;
void gray(int n, const rgb *p, unsigned char *o) { while (n--) { *o++ = (p->r * 77 + p->g * 150 + p->b * 29) >> 8; p++; } }
//----
// ptrtoelem  sizes: n=7; loops: parallel
typedef struct { double x, y, z; } v3;
void norm(int n, v3 *p) { for (int i = 0; i < n; i++) { v3 *q = &p[i]; double l = q->x + q->y + q->z; q->x /= l; q->y /= l; q->z /= l; } }
//----
// onetype  sizes: n=7; loops: parallel
struct cell { double u; int flag; double v; };
void f(int n, struct cell *c) { for (int i = 0; i < n; i++) c[i].u = c[i].v * 2; }
//----
// intfield  sizes: n=7; loops: parallel
struct cell { double u; int flag; short k; double v; };
void f(int n, struct cell *c, int *o) { for (int i = 0; i < n; i++) o[i] = c[i].flag + 1; }
//----
// twod  sizes: n=4; loops: parallel parallel
struct px { float r, g; };
void f(int n, struct px a[4][5], float o[4][5]) { for (int i = 0; i < n; i++) for (int j = 0; j < 5; j++) o[i][j] = a[i][j].r + a[i][j].g; }
//----
// localarr  sizes: n=4; loops: parallel parallel
struct px { float r, g; };
void f(int n, const float *a, float *o) { for (int i = 0; i < n; i++) { struct px t[3]; for (int k = 0; k < 3; k++) { t[k].r = a[i] + k; t[k].g = a[i] * k; } o[i] = t[0].r + t[1].g + t[2].r; } }
//----
// init  sizes: n=4; loops: parallel
struct v { float x, y, z; };
void f(int n, const float *a, float *o) { for (int i = 0; i < n; i++) { struct v t = { a[i], 2, a[i] + 1 }; o[i] = t.x * t.y + t.z; } }
//----
// cells  sizes: g_n=5; shapes: g_c=5x2; loops: parallel
struct c { float u, v; }; struct g { int n; struct c *c; };
void f(struct g *g) { for (int i = 0; i < g->n; i++) g->c[i].u = g->c[i].v; }
//----
// scopstruct  sizes: g_n=5; shapes: g_v=9; loops: parallel
struct g { int n; float *v; };
float h(struct g *g) { float s = 0;
#pragma scop
for (int i = 0; i < g->n; i++) g->v[i] = i;
#pragma endscop
return g->v[0]; }
//----
// rowfield  sizes: g_n=5 g_m=4; shapes: g_v=20; loops: parallel parallel
struct g { int n, m; float *v; };
void h(struct g *g) { for (int i = 0; i < g->n; i++) { float *r = g->v + i * g->m; for (int j = 0; j < g->m; j++) r[j] += j; } }
//----
// nested2  sizes: n=5; shapes: c_g=2 c_v=9; loops: parallel
struct g { float a, b; }; struct ctx { struct g *g; float *v; };
void h(struct ctx *c, int n) { for (int i = 0; i < n; i++) c->v[i] = c->g->a * i + c->g->b; }
//----
// innerobj  sizes: n=5 c_g_k=3; shapes: c_v=9; loops: parallel
struct g { float a, b; int k; }; struct ctx { struct g g; float *v; };
void h(struct ctx *c, int n) { for (int i = 0; i < n; i++) c->v[i] = c->g.a * i + c->g.b + c->g.k; }
//----
// alias  sizes: n=5 b_n=4; shapes: a_v=9 b_v=9; loops: parallel
struct g { int n; float *v; };
void h(struct g *a, struct g *b, int n) { for (int i = 0; i < n; i++) a->v[i] = b->v[i] + b->n; }
//----
// alias2  sizes: n=5; shapes: a_v=9 x=9; loops: parallel
struct g { int n; float *v; };
void h(struct g *a, struct g *b, float *x, int n) { a->n = 3; for (int i = 0; i < n; i++) x[i] = b->n; }
//----
// image  sizes: im_w=5 im_h=4 im_stride=7; shapes: im_data=30 out_data=30; loops: parallel parallel
typedef struct { int w, h, stride; unsigned char *data; } image;
void invert(const image *im, image *out) { for (int y = 0; y < im->h; y++) { const unsigned char *s = im->data + y * im->stride; unsigned char *d = out->data + y * im->stride; for (int x = 0; x < im->w; x++) d[x] = 255 - s[x]; } }
//----
// soa  sizes: p_n=9; shapes: p_x=9 p_y=9 p_vx=9 p_vy=9; loops: parallel
struct parts { int n; double *x, *y, *vx, *vy; };
void step(struct parts *p, double dt) { for (int i = 0; i < p->n; i++) { p->x[i] += dt * p->vx[i]; p->y[i] += dt * p->vy[i]; } }
//----
// cmul  sizes: n=9; loops: reduction
typedef struct { float re, im; } c32;
static inline c32 unused(c32 a) { return a; }
void dot(int n, const c32 *a, const c32 *b, float *r) { float sr = 0, si = 0; for (int i = 0; i < n; i++) { sr += a[i].re * b[i].re - a[i].im * b[i].im; si += a[i].re * b[i].im + a[i].im * b[i].re; } r[0] = sr; r[1] = si; }
//----
// edges  sizes: m=6; shapes: e=6x2 d=20; loops: reduction
struct edge { int src, dst; };
void deg(int m, const struct edge *e, int *d) { for (int i = 0; i < m; i++) { d[e[i].src]++; d[e[i].dst]++; } }
//----
// heat2  sizes: n=6; shapes: g=36x2; loops: sequential sequential parallel
typedef struct { double old, new; } cell;
void step(int n, cell *g) { for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) g[i * n + j].new = 0.25 * (g[(i - 1) * n + j].old + g[(i + 1) * n + j].old + g[i * n + j - 1].old + g[i * n + j + 1].old); for (int i = 0; i < n * n; i++) g[i].old = g[i].new; }
//----
// ptrwalk2  sizes: n=6; loops: reduction
typedef struct { double x, y; } pt;
void sum(int n, const pt *p, double *o) { double s = 0; for (const pt *q = p; q < p + n; q++) s += q->x * q->y; *o = s; }
//----
// matrix44  sizes: n=3; loops: parallel parallel reduction
typedef struct { float m[4][4]; } mat; typedef struct { float v[4]; } vec;
void xf(int n, const mat *a, const vec *x, vec *y) { for (int i = 0; i < n; i++) for (int r = 0; r < 4; r++) { float s = 0; for (int c = 0; c < 4; c++) s += a->m[r][c] * x[i].v[c]; y[i].v[r] = s; } }
//----
// matrices  sizes: n=3; loops: parallel parallel reduction
typedef struct { float m[4][4]; } mat; typedef struct { float v[4]; } vec;
void xf(int n, const mat *a, const vec *x, vec *y) { for (int i = 0; i < n; i++) for (int r = 0; r < 4; r++) { float s = 0; for (int c = 0; c < 4; c++) s += a[i].m[r][c] * x[i].v[c]; y[i].v[r] = s; } }
//----
// pixels  sizes: w=5 h=4; shapes: p=20x3 o=20; loops: parallel parallel
typedef struct { float r, g, b; } px;
void f(int w, int h, const px *p, float *o) { for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) o[y * w + x] = p[y * w + x].r + p[y * w + x].b; }
//----
// pixelsinplace  sizes: w=5 h=4 s=7; shapes: p=40x3; loops: parallel parallel
typedef struct { float r, g, b; } px;
void f(int w, int h, int s, px *p) { for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) { px *q = p + y * s + x; q->r = q->g * 2; } }
//----
// interleaved  sizes: w=5 h=4; shapes: a=20x2; loops: parallel parallel
void f(int w, int h, float a[][2]) { for (int y = 0; y < h; y++) for (int x = 0; x < w; x++) a[y * w + x][0] = a[y * w + x][1]; }
//----
// heat3  sizes: n=6; shapes: g=36x2; loops: parallel parallel
typedef struct { double old, new; } cell;
void step(int n, cell *g) { for (int i = 1; i < n - 1; i++) for (int j = 1; j < n - 1; j++) g[i * n + j].new = 0.25 * (g[(i - 1) * n + j].old + g[(i + 1) * n + j].old + g[i * n + j - 1].old + g[i * n + j + 1].old); }
//----
// inlptr  sizes: n=6; loops: parallel
typedef struct { double x, y; } pt;
static void mv(pt *p, double d) { p->x += d; p->y -= d; }
void f(int n, pt *p) { for (int i = 0; i < n; i++) mv(&p[i], 0.5); }
//----
// inlval  sizes: n=6; loops: parallel
typedef struct { double x, y; } pt;
static double nrm(pt p) { return p.x * p.x + p.y; }
void f(int n, pt *p, double *o) { for (int i = 0; i < n; i++) o[i] = nrm(p[i]); }
//----
// inlret  sizes: n=6; loops: parallel
typedef struct { double re, im; } c;
static c mul(c a, c b) { c r; r.re = a.re * b.re - a.im * b.im; r.im = a.re * b.im + a.im * b.re; return r; }
void f(int n, c *p, c *o) { for (int i = 0; i < n; i++) o[i] = mul(p[i], o[i]); }
//----
// inlarr  sizes: n=6 m=4; loops: parallel parallel
static void row(float *d, const float *s, int n) { for (int i = 0; i < n; i++) *d++ = *s++ * 2; }
void f(int n, int m, float *a, float *b) { for (int i = 0; i < n; i++) row(a + i * m, b + i * m, m); }
//----
// condk  sizes: n=6; shapes: a=40 b=40; loops: sequential
void f(int n, int *a, int *b) { int k = 0; for (int i = 0; i < n; i++) { if (b[i] > 4) a[k++] = b[i]; } a[30] = k; }
//----
// pk  sizes: n=6; shapes: a=40 b=40; loops: parallel
void f(int n, int *a, int *b) { int k = 0; for (int i = 0; i < n; i++) a[k++] = b[i] + *b; a[30] = k; }
//----
// brk  sizes: n=6; shapes: a=40 b=40; loops:
void f(int n, int *a, int *b) { int *p = a; while (n--) { if (*b > 100) break; *p++ = *b++; } a[30] = n; }
//----
// inlval2  sizes: n=6; loops: parallel
typedef struct { double x, y; } pt;
static double nrm(pt p) { return p.x * p.x + p.y; }
void f(int n, pt *p, double *o) { for (int i = 0; i < n; i++) { pt t = p[i]; t.x += 1; o[i] = nrm(t) + nrm(p[0]); } }
//----
// inlret2  sizes: n=6; loops: parallel
typedef struct { double re, im; } c;
static c mk(double a, double b) { c r = { a, b }; return r; }
static c add(c a, c b) { return mk(a.re + b.re, a.im + b.im); }
static c mul(c a, c b) { c r; r.re = a.re * b.re - a.im * b.im; r.im = a.re * b.im + a.im * b.re; return r; }
void f(int n, c *p, c *o) { for (int i = 0; i < n; i++) o[i] = add(mul(p[i], o[i]), p[0]); }
//----
// inlptr2  sizes: n=6; loops: parallel reduction
typedef struct { float v[3]; } v3;
static float dot(const v3 *a, const v3 *b) { float s = 0; for (int k = 0; k < 3; k++) s += a->v[k] * b->v[k]; return s; }
void f(int n, v3 *p, float *o) { for (int i = 0; i < n; i++) o[i] = dot(&p[i], p + i); }
//----
// sizedfield  sizes: n=4; loops: parallel parallel
#define W 8
struct s { float a[W + 2]; float b[(W / 2)]; };
void f(struct s *p, int n) { for (int k = 0; k < n; k++) for (int i = 0; i < 4; i++) p[k].a[i] = p[k].b[i] + i; }
//----
// sizedfield2  sizes: n=4; loops: parallel parallel parallel
#define W 8
struct s { int m[2][W / 2][3]; };
void f(struct s *p, int n) { for (int k = 0; k < n; k++) for (int i = 0; i < W / 2; i++) for (int j = 0; j < 3; j++) p[k].m[1][i][j] = p[k].m[0][i][j] + i; }
//----
// mixswap  sizes: n=6; loops: parallel
struct p { double x, y; };
void f(int n, struct p *a, struct p *b) { for (int i = 0; i < n; i++) { struct p t = a[i]; a[i] = b[n - 1 - i]; b[n - 1 - i] = t; } }
//----
// localcopy  sizes: n=6; loops: sequential
struct p { double x, y; };
void f(int n, struct p *a) { struct p last = a[0]; for (int i = 1; i < n; i++) { struct p t = a[i]; a[i].x += last.x; a[i].y -= last.y; last = t; } }
//----
// selfassign  sizes: n=6; loops: parallel
struct p { double x, y; };
void f(int n, struct p *a) { for (int i = 0; i < n; i++) { struct p t; t.x = a[i].y; t.y = a[i].x; a[i] = t; } }
//----
// boolfield  sizes: n=6; loops: parallel
struct cell { unsigned char a, b, c, d; };
void f(int n, struct cell *c) { for (int i = 0; i < n; i++) { c[i].a = c[i].b + c[i].c; c[i].d++; c[i].b <<= 1; } }
//----
// incr  sizes: n=6; loops: reduction
struct acc { long n; long m; };
void f(int n, struct acc *c, const long *x) { for (int i = 0; i < n; i++) { c->n++; c->m += x[i]; } }
//----
// twoacc  sizes: n=6; loops: reduction
struct acc { long n; long m; };
void f(int n, struct acc *c, struct acc *d, const long *x) { for (int i = 0; i < n; i++) { c->n += d->m + x[i]; } d->m = 3; }
//----
// rowobj  sizes: n=5 m_rows=5 m_cols=4; shapes: m_d=20 v=4 o=5; loops: parallel reduction
typedef struct { int rows, cols; double *d; } M;
static double at(const M *m, int i, int j) { return m->d[i * m->cols + j]; }
void mv(int n, const M *m, const double *v, double *o) { for (int i = 0; i < m->rows; i++) { double s = 0; for (int j = 0; j < m->cols; j++) s += at(m, i, j) * v[j]; o[i] = s; } }
//----
// walkpart  sizes: n=6; loops: parallel parallel
typedef struct { float x[3], v[3]; } P;
void f(int n, P *p, float dt) { for (P *e = p + n; p != e; p++) { float *x = p->x; const float *v = p->v; for (int d = 0; d < 3; d++) x[d] += dt * v[d]; } }
//----
// sizeofs  sizes: n=6; loops: parallel
typedef struct { float x[3], v[3]; } P;
void f(int n, P *p, int *o) { for (int i = 0; i < n; i++) { o[i] = sizeof(float) + i; p[i].x[0] = 1; } }
//----
// globalarr  sizes: n=6; loops: parallel
struct { int a, b; } tab[10]; int s[10];
void f(int n) { for (int i = 0; i < n; i++) { tab[i].a = tab[i].b + s[i]; } }
//----
// globalobj  sizes: n=6; loops: parallel
struct { int n; float v[10]; } st;
void f(int n) { for (int i = 0; i < n; i++) st.v[i] *= 2; st.n = n; }
//----
// mixed_fields  sizes: n=7; loops: parallel
typedef struct { int id; double x, y; float m[3]; } cell;
void f(int n, cell *p, const cell *q) { for (int i = 0; i < n; i++) { p[i].x = q[i].y * q[i].id + q[i].m[2]; p[i].id = i; } }
//----
// mixed_pointers  sizes: n=7; loops: parallel parallel
struct cell { int id; double x; float m[3]; };
void f(int n, struct cell *p, float *o) { const struct cell *end = p + n; for (struct cell *q = p; q < end; q++) { q->x += q->id; q->m[1] = 2; } for (int i = 0; i < n; i++) { struct cell *c = &p[i]; o[i] = (*c).m[0] + c->x; } }
//----
// mixed_copies  sizes: n=7; loops: parallel
struct v { float x, y; }; struct cell { short k; struct v at; double w[2]; };
void f(int n, struct cell *p, const struct cell *q) { for (int i = 0; i < n; i++) { struct cell t = q[i]; t.at.x += t.k; t.w[1] = t.w[0] * 2; p[i] = t; } }
//----
// mixed_grid  sizes: n=4; loops: parallel parallel
struct cell { char flag; double u; };
struct cell g[4][5];
void f(int n) { for (int i = 0; i < n; i++) for (int j = 0; j < 5; j++) if (g[i][j].flag > 3) g[i][j].u *= 2; }
//----
// mixed_field  sizes: g_n=5; loops: parallel
struct cell { int flag; double u; }; struct grid { int n; struct cell *c; };
void f(struct grid *g) { for (int i = 0; i < g->n; i++) if (g->c[i].flag > 3) g->c[i].u *= 2; }
//----
// mixed_local  sizes: n=5; loops: parallel parallel
struct cell { int flag; double u; };
void f(int n, double *o) { struct cell t[8]; for (int i = 0; i < n; i++) { t[i].flag = i % 2; t[i].u = o[i]; } for (int i = 0; i < n; i++) o[i] = t[i].flag ? t[i].u : 0; }
//----
// mixed_rows  sizes: n=4 m=5; loops: parallel parallel
struct cell { int flag; double u; };
void f(int n, int m, struct cell a[n][m], double *o) { for (int i = 0; i < n; i++) { struct cell *r = a[i]; for (int j = 0; j < m; j++) { r[j].u = r[j].flag + 1; o[i * m + j] = a[i][j].u; } } }
//----
// mixed_edges  sizes: m=6; shapes: d=20 e_dst=6 e_w=6; loops: reduction
struct edge { int src, dst; float w; };
void f(int m, const struct edge *e, float *d) { for (int i = 0; i < m; i++) d[e[i].dst] += e[i].w; }
//----
// mixed_calls  sizes: n=6; loops: parallel parallel
struct body { double x[3]; int k; };
static void move(struct body *b, double dt) { for (int d = 0; d < 3; d++) b->x[d] += dt * b->k; }
void f(int n, struct body *b, double dt) { for (int i = 0; i < n; i++) move(&b[i], dt); }
//----
// mixed_scop  sizes: n=6; loops: parallel
#include <stdlib.h>
struct cell { int flag; double u; };
struct cell *all;
void f(int n) { struct cell *c = malloc(n * sizeof *c), *d = all; for (int i = 0; i < n; i++) c[i].flag = 1;
#pragma scop
  for (int i = 0; i < n; i++) { c[i].u = c[i].flag + all[i].u; all[i].flag = 0; }
#pragma endscop
  all[0].u = c[0].u; free(c); }
//----
// cvec  sizes: n=6; loops: parallel parallel reduction
typedef struct { double re, im; } complex_t;
static inline complex_t cmul(complex_t a, complex_t b) { complex_t r; r.re = a.re*b.re - a.im*b.im; r.im = a.re*b.im + a.im*b.re; return r; }
static inline complex_t cadd(complex_t a, complex_t b) { complex_t r = {a.re + b.re, a.im+b.im}; return r; }
void gemm(int n, const complex_t *a, const complex_t *b, complex_t *c) {
  for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) {
    complex_t s = {0, 0};
    for (int k = 0; k < n; k++) s = cadd(s, cmul(a[i*n+k], b[k*n+j]));
    c[i*n+j] = s;
  }
}
//----
// lit  sizes: n=6; loops: parallel
typedef struct { float x, y, z; } v3;
static inline v3 sub(v3 a, v3 b) { return (v3){a.x - b.x, a.y - b.y, a.z - b.z}; }
static inline v3 cross(v3 a, v3 b) { return (v3){.x = a.y * b.z - a.z * b.y, .z = a.x * b.y - a.y * b.x, .y = a.z * b.x - a.x * b.z}; }
static inline float dot(v3 a, v3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
void f(int n, const v3 *p, const v3 *q, v3 *o, float *d) {
  for (int i = 0; i < n; i++) {
    v3 w = cross(sub(p[i], q[i]), (v3){1, 2});
    o[i] = d[i] > 0 ? w : sub(w, p[i]);
    d[i] = dot(cross(p[i], w), q[i]) + cross(w, p[i]).y;
    o[i] = (v3){o[i].y, o[i].x, 3};
  }
}
//----
// result  sizes: n=6; loops: reduction
typedef struct { double re, im; } z;
static z mul(z a, z b) { z r = {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; return r; }
z dot(int n, const z *x, const z *y) { z s = {0}; for (int i = 0; i < n; i++) { z t = mul(x[i], y[i]); s.re += t.re; s.im += t.im; } return s; }
//----
// ptrs  sizes: n=6; loops: parallel
typedef struct { double re, im; } z;
static void mul(z *r, const z *a, const z *b) { double t = a->re * b->re - a->im * b->im; r->im = a->re * b->im + a->im * b->re; r->re = t; }
static void inc(z *r, const z *a) { r->re += a->re; r->im += a->im; }
void f(int n, const z *x, const z *y, z *o) { for (int i = 0; i < n; i++) { z s = {0, 0}, t; mul(&t, &x[i], y + i); inc(&s, &t); mul(&s, &s, &t); o[i] = s; mul(&o[i], &o[i], &t); } }
//----
// pow  sizes: n=6; loops: parallel sequential
typedef struct { double re, im; } z;
static z power(z a, int k) { z r = {1, 0}; for (int i = 0; i < k; i++) { double t = r.re * a.re - r.im * a.im; r.im = r.re * a.im + r.im * a.re; r.re = t; if (t > 100) return a; } return r; }
void f(int n, z *x) { for (int i = 0; i < n; i++) x[i] = power(x[i], i); }
//----
// nestedinit  sizes: n=6; loops: parallel
struct in { float a, b; }; struct out { int k; struct in u; double m[3]; };
void f(int n, float *x, double *y) { for (int i = 0; i < n; i++) { struct out o = {.u = {1, x[i]}, .m = {2, y[i]}}, p; p = o; p.u.b += p.m[1]; x[i] = p.u.b + o.k + p.m[2]; y[i] = o.m[0]; } }
//----
// writtenvalue  sizes: n=6 c_k=3 c_s=0.5; loops: sequential
struct c { double s; int k; };
void f(int n, double *x, struct c c) { for (int i = 0; i < n; i++) { c.s += 1; x[i] = c.s * c.k; } }
//----
// table  sizes: n=6; loops: parallel
static const struct { double w; int at; } tab = {0.5, 1};
static double g(double x) { return x * tab.w + tab.at; }
void f(int n, double *x) { for (int i = 0; i < n; i++) x[i] = g(x[i]) + tab.at; }
//----
// byvaluemandel  sizes: n=6 most=20; loops: parallel parallel sequential
typedef struct { double x, y; } cplx;
static inline cplx sq(cplx a) { return (cplx){a.x * a.x - a.y * a.y, 2 * a.x * a.y}; }
static inline cplx add(cplx a, cplx b) { a.x += b.x; a.y += b.y; return a; }
static inline double len2(cplx a) { return a.x * a.x + a.y * a.y; }
void f(int n, int most, int *out) { for (int i = 0; i < n; i++) for (int j = 0; j < n; j++) { cplx c = {-2 + 3.0 * j / n, -1 + 2.0 * i / n}, z = {0, 0}; int k; for (k = 0; k < most; k++) { z = add(sq(z), c); if (len2(z) > 4) break; } out[i * n + j] = k; } }
//----
// opaque  sizes: g_n=6; loops: parallel
typedef struct grid grid_t, *grid_p;
struct outer { grid_p g; };
struct grid { int n; double h; double *data; };
void f(grid_t *g) { for (int i = 0; i < g->n; i++) g->data[i] *= g->h; }
//----
// ledto  sizes: o_m=6; loops: parallel
struct inner; struct outer { struct inner *b; struct { struct inner *c; int k; } in; int m; };
struct inner { double *x; double w[4]; double s; struct inner *next; struct outer *back; };
void f(struct outer *o) {
  for (int i = 0; i < o->m; i++) o->b->x[i] += o->in.c->x[i] * (*o->b).w[i % 4] + o->b->next->s * o->b[0].s;
}
//----
// ledsum  sizes: n=6; loops: reduction
struct inner { double *x; double s; }; struct outer { struct inner *b; };
void f(int n, struct outer *o) { for (int i = 0; i < n; i++) o->b->s += o->b->x[i]; }
//----
// spelled  sizes: o_m=6; loops: sequential
struct inner { double w[8]; int k; }; struct outer { struct inner *in; int m; };
void f(struct outer *o) { for (int i = 0; i < (*o).m; i++) { (*(*o).in).w[i] += o->in->w[i + 1] + o[0].in[0].k; (*o).in->k = o->in->k + 1; } }

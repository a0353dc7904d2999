struct s { int x; };
static int f(struct s *p) { return p->x; }
#define f(p) ((p)->x)
static int run(int append) { return append; }
static double w(double uint64, int float64) { return uint64 + float64; }
static void op(void) {}

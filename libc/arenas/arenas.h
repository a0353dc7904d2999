// The most arenas that malloc may make, as this package or the environment has set it; 0 if neither
// has.
extern int cheap_arenas_max;

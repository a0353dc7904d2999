typedef struct thing thing;
struct thing { int n; };
typedef struct thing *thing_ref;
typedef unsigned thing_number_t;
typedef thing_number_t thing_id;

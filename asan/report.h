// What the sanitizer's report lacks: which block it is, and who has allocated and freed it.

#include <stdint.h>

// cheap_report_init has the sanitizer call this package at the end of a report.
void cheap_report_init(void);

// cheap_report_factor says by what the headers of blocks are sealed.
void cheap_report_factor(uint64_t factor);

// cheap_report_stack takes the text of a stack, which malloc has allocated.
void cheap_report_stack(uint32_t id, char *text);

#include <stddef.h>
#include <stdint.h>

struct cside_ledger;

// cside_ledger_new returns a ledger with room for so many resources, or NULL if there
// is no memory. With reuse, the last destroyed resource is the next to be created,
// as with malloc. Without reuse, no address is created twice.
struct cside_ledger *cside_ledger_new(size_t room, int reuse);

// cside_ledger_free frees a ledger and all of its resources.
void cside_ledger_free(struct cside_ledger *ledger);

// cside_entry_create returns a new resource, or NULL if there is no room.
void *cside_entry_create(void *ledger);

// cside_entry_destroy destroys a resource of any ledger.
void cside_entry_destroy(void *entry);

// cside_entry_destroy_of destroys a resource, which must be of the ledger.
void cside_entry_destroy_of(void *ledger, void *entry);

// cside_entry_destroy_all destroys n resources.
void cside_entry_destroy_all(const uintptr_t *entries, size_t n);

// cside_entry_use reads a resource so many times, and returns how often it was
// destroyed.
size_t cside_entry_use(void *entry, size_t times);

// cside_entry_depend says that a resource must be destroyed before the parent. Both
// must be alive, and a resource has one parent at most.
void cside_entry_depend(void *entry, void *parent);

struct cside_report {
	uint64_t created, destroyed;  // sums over all addresses
	uint64_t live;                // addresses that were created once more than destroyed
	uint64_t unbalanced;          // addresses for which that is not so, and the counts differ
	uint64_t twice;               // destructions of a destroyed resource
	uint64_t misplaced;           // destructions with the wrong ledger
	uint64_t dead_uses;           // reads of a destroyed resource
	uint64_t orphans;             // resources whose parent was destroyed before them
};

struct cside_report cside_ledger_report(struct cside_ledger *ledger);

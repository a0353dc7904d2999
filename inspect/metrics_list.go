package inspect

import (
	"strconv"
	"time"

	"github.com/cheapgo/cheap/internal/mem/span"
)

// tableSpecs has all metrics. It is the only list of them: Metrics, Read, the page, its texts and the
// documentation are made from it.
//
// The get of a column takes its value from a snapshot (read.go), which has it from these counters:
//
//	heaps, pools, the C heap      internal/watch/census, whose types the packages cheap, own and cmem fill
//	pacing, and refusals          pace.Stats
//	accounts                      internal/mem/account
//	samples, calls of the system  internal/watch/sample, internal/mem/osmem
var tableSpecs = []tableSpec{
	{
		name: "resident", title: "Resident memory",
		about:  "What the resident memory of the process is for. Each page is in one part, and the parts add up to the whole. Metrics are read without the list of mappings: there, stacks of threads and variables of libraries count as C.",
		labels: []string{"part"},
		rows:   partRows,
		columns: []column{
			gauge("cheap_part_resident_bytes", "bytes", "resident", "Resident bytes of the part.",
				func(r *row) float64 { return float64(r.part.Bytes) }),
			gauge("", "bytes", "swapped out", "Bytes of the part that were swapped out.",
				func(r *row) float64 { return float64(r.part.Swap) }),
		},
	},
	{
		name: "verdict", title: "Verdict",
		about:  "What holds the memory. docs/tools.md has the rules.",
		labels: []string{"about"},
		rows:   func(s *snapshot, emit func([]string, row)) { emit([]string{string(s.verdict.About)}, row{}) },
		columns: []column{
			gauge("cheap_verdict", "faults", "fault", "1 if something is wrong, as far as can be told, and 0 if not.",
				func(r *row) float64 {
					if r.all.verdict.Fault {
						return 1
					}
					return 0
				}),
		},
	},
	{
		name: "process", title: "Process and container",
		about: "What the kernel says of the process, and of the memory cgroup that leaves it least room, and what malloc has said in the last look inside.",
		rows:  func(s *snapshot, emit func([]string, row)) { emit(nil, row{}) },
		columns: []column{
			gauge("cheap_process_resident_bytes", "bytes", "resident", "Resident bytes of the process.",
				func(r *row) float64 { return float64(r.all.parts.Resident) }),
			gauge("cheap_process_swapped_bytes", "bytes", "swapped out", "Bytes of the process that were swapped out. Leaked pages that nobody touches may be here.",
				func(r *row) float64 { return float64(r.all.parts.Swap) }),
			gauge("cheap_process_threads", "threads", "threads", "Threads of the process.",
				func(r *row) float64 { return float64(r.all.reading.Kernel.Threads) }),
			gauge("cheap_cgroup_charged_bytes", "bytes", "charged", "Bytes that the cgroup is charged: of all its processes, and of files that are cached.",
				func(r *row) float64 { return float64(r.all.reading.Cgroup.Charged) }),
			gauge("cheap_cgroup_limit_bytes", "bytes", "limit", "Its limit, memory.max or memory.high if that is less, or 0.",
				func(r *row) float64 { return float64(r.all.reading.Cgroup.Limit) }),
			gauge("cheap_cgroup_high_bytes", "bytes", "high", "The bytes from which on the kernel slows it down, or 0.",
				func(r *row) float64 { return float64(r.all.reading.Cgroup.High) }),
			gauge("cheap_cgroup_swapped_bytes", "bytes", "its swap", "Its bytes that were swapped out.",
				func(r *row) float64 { return float64(r.all.reading.Cgroup.Swap) }),
			gauge("cheap_cgroup_anonymous_bytes", "bytes", "anonymous", "The part of the charge that is memory of its processes, and no file.",
				func(r *row) float64 { return float64(r.all.reading.Cgroup.Anonymous) }),
			gauge("cheap_cgroup_cache_bytes", "bytes", "page cache", "The part that is pages of files, which the kernel drops when memory is short.",
				func(r *row) float64 { return float64(r.all.reading.Cgroup.Cache) }),
			gauge("cheap_cgroup_shared_bytes", "bytes", "shared", "The part that is shared memory, and files of tmpfs.",
				func(r *row) float64 { return float64(r.all.reading.Cgroup.Shared) }),
			gauge("cheap_cgroup_kernel_bytes", "bytes", "kernel", "The part that is memory of the kernel.",
				func(r *row) float64 { return float64(r.all.reading.Cgroup.Kernel) }),
			counter("cheap_cgroup_ooms_total", "times", "limit met", "How often the limit was met, and nothing could be given back. Version 1 of cgroups does not count it.",
				func(r *row) float64 { return float64(r.all.reading.Cgroup.OOM) }),
			counter("cheap_cgroup_kills_total", "processes", "killed", "Processes that the kernel has killed because of the limit.",
				func(r *row) float64 { return float64(r.all.reading.Cgroup.OOMKills) }),
			gauge("cheap_cgroup_pressure_percent", "percent", "pressure", "The part of the last ten seconds in which a process waited for memory. Version 1 of cgroups does not have it.",
				func(r *row) float64 { return r.all.reading.Cgroup.Pressure }),
			gauge("cheap_malloc_used_bytes", "bytes", "malloc, in use", "Bytes of blocks of C's malloc in use, in the last look, in a program that imports package libc.",
				func(r *row) float64 { return float64(r.all.reading.Malloc.InUse) }),
			gauge("cheap_malloc_free_bytes", "bytes", "malloc, free", "Bytes that C's malloc has beside them, some of which may not be resident.",
				func(r *row) float64 { return float64(r.all.reading.Malloc.Free) }),
			gauge("cheap_malloc_longest_look_seconds", "seconds", "longest look", "The longest look inside malloc so far. Looks take its locks, one percent of the time at most.",
				longest),
		},
	},
	{
		name: "threads", title: "Threads",
		about:  "Threads of the process by who has begun them: Go, or a library, or a function of C in the program, where glibc says so. The list of mappings tells it, so metrics have what the last look at that has shown; before the first, where the list is too long, with another libc, and on 32 bits, the threads of Go and of C, none of them idle.",
		labels: []string{"by"},
		rows: func(s *snapshot, emit func([]string, row)) {
			for i := range s.reading.Threads {
				emit([]string{s.reading.Threads[i].By}, row{threads: &s.reading.Threads[i]})
			}
		},
		columns: []column{
			gauge("cheap_threads", "threads", "threads", "Threads.",
				func(r *row) float64 { return float64(r.threads.Count) }),
			gauge("cheap_threads_idle", "threads", "idle", "Of these, threads that sleep.",
				func(r *row) float64 { return float64(r.threads.Idle) }),
			gauge("cheap_threads_stack_bytes", "bytes", "stacks", "Resident bytes of their stacks, without 16 KiB for each in the kernel.",
				func(r *row) float64 { return float64(r.threads.Stacks) }),
		},
	},
	{
		name: "totals", title: "Totals",
		about: "All heaps together, and what package own keeps of owners. The first six are defined as the statistics of jemalloc of the same names.",
		rows:  func(s *snapshot, emit func([]string, row)) { emit(nil, row{}) },
		columns: []column{
			gauge("cheap_allocated_bytes", "bytes", "allocated", "Bytes of the blocks in use. Each counts as the size of its class.",
				func(r *row) float64 { return float64(r.all.allocated) }),
			gauge("cheap_active_bytes", "bytes", "active", "Bytes of the spans that heaps have. At least cheap_allocated_bytes, and a multiple of 4 KiB.",
				func(r *row) float64 { return float64(r.all.active) }),
			gauge("cheap_resident_bytes", "bytes", "resident", "The most bytes that may be resident: of spans, of idle units, of owners and of metadata. Pages that were never touched count as well.",
				func(r *row) float64 {
					return float64(r.all.active + r.all.idleBytes() + r.all.store + r.all.metadata())
				}),
			gauge("cheap_retained_bytes", "bytes", "retained", "Bytes of address space that are kept, and hold no span and no idle memory.",
				func(r *row) float64 { return float64(r.all.retained()) }),
			gauge("cheap_mapped_bytes", "bytes", "mapped", "Bytes of address space that are handed out to heaps and to owners, in units of 64 KiB, and metadata. Idle units are not among them.",
				func(r *row) float64 { return float64(r.all.mapped()) }),
			gauge("cheap_metadata_bytes", "bytes", "metadata", "Bytes that are mapped for records and caches.",
				func(r *row) float64 { return float64(r.all.metadata()) }),
			gauge("cheap_idle_bytes", "bytes", "idle", "Bytes that hold nothing and may have memory: units, and what lies behind a span in its last unit. The decay gives them back.",
				func(r *row) float64 { return float64(r.all.idleBytes()) }),
			gauge("cheap_owners_bytes", "bytes", "owners", "Bytes outside the Go heap that package own keeps of owners, without their resources.",
				func(r *row) float64 { return float64(r.all.store) }),
			gauge("cheap_samples", "samples", "samples", "Blocks in use that are sampled for the heap profile.",
				func(r *row) float64 { return float64(r.all.samples) }),
			gauge("cheap_sample_bytes", "bytes", "their records", "Bytes of the Go heap that the records of samples take, about. They are at most 256 KiB and one in 256 bytes in use, or what is left when sizes are no longer told apart.",
				func(r *row) float64 { return float64(r.all.sampleBytes) }),
			counter("cheap_decay_ticks_total", "ticks", "ticks", "How often the decay has looked for idle memory.",
				func(r *row) float64 { return float64(r.all.totals.Ticks) }),
			counter("cheap_decommits_total", "calls", "given back", "Calls of the system that gave memory back and kept the addresses: by the decay, by Trim, and at limits.",
				func(r *row) float64 { return float64(r.all.system.Decommits) }),
			counter("cheap_decommitted_bytes_total", "bytes", "bytes", "Bytes that these calls gave back. Pages that were never touched count as well.",
				func(r *row) float64 { return float64(r.all.system.Decommitted) }),
			gauge("cheap_heaps", "heaps", "heaps", "Heaps that are not destroyed.",
				func(r *row) float64 { return float64(len(r.all.heaps)) }),
			counter("cheap_heaps_destroyed_total", "heaps", "destroyed", "Heaps that were destroyed.",
				func(r *row) float64 { return float64(r.all.totals.Destroyed) }),
			gauge("cheap_pools", "pools", "pools", "Pools and memories of package own that were neither collected nor destroyed.",
				func(r *row) float64 { return float64(len(r.all.pools)) }),
			gauge("cheap_releases_queued", "releases", "queued", "Releases that wait for a goroutine of package own, or for Drain.",
				func(r *row) float64 { return float64(r.all.queued) }),
		},
	},
	{
		name: "pace", title: "Pacing",
		about: "What package pace has done since pace.Start.",
		rows:  func(s *snapshot, emit func([]string, row)) { emit(nil, row{}) },
		columns: []column{
			counter("cheap_pace_collections_total", "collections", "collections", "Garbage collections that package pace has started.",
				func(r *row) float64 { return float64(r.all.pace.Cycles) }),
			counter("cheap_pace_cpu_seconds_total", "seconds", "CPU", "Processor time of these collections.",
				func(r *row) float64 { return r.all.pace.CPUTime.Seconds() }),
			counter("cheap_pace_released_bytes_total", "bytes", "released", "Bytes outside the Go heap that were released after these collections.",
				func(r *row) float64 { return float64(r.all.pace.Released) }),
			counter("cheap_pace_yields_total", "yields", "yields", "Allocations that yielded while a collection was due.",
				func(r *row) float64 { return float64(r.all.pace.Yields) }),
			counter("cheap_pace_yield_seconds_total", "seconds", "yielded", "The sum of the times that they yielded.",
				func(r *row) float64 { return r.all.pace.YieldTime.Seconds() }),
			counter("cheap_pace_waits_total", "waits", "waits", "Allocations that waited for a collection.",
				func(r *row) float64 { return float64(r.all.pace.Waits) }),
			counter("cheap_pace_wait_seconds_total", "seconds", "waited", "The sum of the times that they waited.",
				func(r *row) float64 { return r.all.pace.WaitTime.Seconds() }),
			counter("cheap_pace_refusals_total", "requests", "refusals", "Requests that failed at a limit.",
				func(r *row) float64 { return float64(r.all.pace.Refusals) }),
			gauge("cheap_pace_held_bytes", "bytes", "held", "Bytes in all accounts, those of heaps included.",
				func(r *row) float64 { return float64(r.all.pace.Held) }),
			gauge("cheap_pace_reclaimable_bytes", "bytes", "reclaimable", "Of these, bytes that a collection releases once their owners are unreachable.",
				func(r *row) float64 { return float64(r.all.pace.Reclaimable) }),
			gauge("cheap_pace_room_bytes", "bytes", "room", "How many more bytes may count against the limit, or 0.",
				func(r *row) float64 { return float64(r.all.pace.Room) }),
			gauge("cheap_pace_limit_bytes", "bytes", "limit", "The limit for the Go heap and all accounts together, or 0.",
				func(r *row) float64 { return float64(r.all.pace.Limit) }),
			gauge("cheap_pace_go_limit_bytes", "bytes", "Go limit", "The runtime's memory limit as package pace has set it, or 0.",
				func(r *row) float64 { return float64(r.all.pace.GoLimit) }),
		},
	},
	{
		name: "caches", title: "Caches",
		about:  "What pace.OnPressure has registered: memory that package pace asks for when there is little room.",
		labels: []string{"cache", "number"},
		rows: func(s *snapshot, emit func([]string, row)) {
			for i := range s.pace.Caches {
				c := &s.pace.Caches[i]
				emit([]string{c.Name, strconv.FormatUint(c.Number, 10)}, row{cache: c})
			}
		},
		columns: []column{
			counter("cheap_cache_asked_bytes_total", "bytes", "asked", "Bytes that the cache was asked for.",
				func(r *row) float64 { return float64(r.cache.Asked) }),
			counter("cheap_cache_freed_bytes_total", "bytes", "freed", "By how many bytes less was in use afterwards.",
				func(r *row) float64 { return float64(r.cache.Freed) }),
			counter("cheap_cache_calls_total", "calls", "calls", "How often it was asked.",
				func(r *row) float64 { return float64(r.cache.Calls) }),
			counter("cheap_cache_seconds_total", "seconds", "time", "How long its function ran.",
				func(r *row) float64 { return r.cache.Time.Seconds() }),
			gauge("cheap_cache_held_bytes", "bytes", "held", "Bytes that it had when it was asked last, as it says, or -1.",
				func(r *row) float64 { return float64(r.cache.Held) }),
			gauge("cheap_cache_slow", "calls", "slow", "1 while a call runs that has taken more than a second.",
				func(r *row) float64 {
					if r.cache.Slow {
						return 1
					}
					return 0
				}),
		},
	},
	{
		name: "heaps", title: "Heaps",
		about:  "Each heap that is not destroyed. Heaps are numbered in the order in which they were made.",
		labels: []string{"heap", "number"},
		rows: func(s *snapshot, emit func([]string, row)) {
			for i := range s.heaps {
				emit(s.heaps[i].labels, row{heap: &s.heaps[i]})
			}
		},
		columns: []column{
			gauge("cheap_heap_blocks", "blocks", "blocks", "Blocks in use.",
				func(r *row) float64 { return float64(r.heap.Blocks) }),
			gauge("cheap_heap_allocated_bytes", "bytes", "allocated", "Usable bytes of the blocks in use.",
				func(r *row) float64 { return float64(r.heap.Bytes) }),
			gauge("cheap_heap_held_bytes", "bytes", "held", "Bytes held from the system, records and caches included.",
				func(r *row) float64 { return float64(r.heap.Held) }),
			gauge("cheap_heap_limit_bytes", "bytes", "limit", "HeapOptions.Limit, or 0.",
				func(r *row) float64 { return float64(r.heap.Limit) }),
			gauge("cheap_heap_fragmentation_bytes", "bytes", "fragmentation", "Bytes held and not in blocks in use.",
				func(r *row) float64 { return float64(max(r.heap.Held-r.heap.Bytes, 0)) }),
			gauge("cheap_heap_cached_bytes", "bytes", "cached", "Bytes of free blocks in caches, those of Locals included.",
				func(r *row) float64 { return float64(r.heap.cached) }),
			gauge("cheap_heap_caches", "caches", "caches", "Caches, those of Locals included.",
				func(r *row) float64 { return float64(r.heap.Caches) }),
			gauge("cheap_heap_spans", "spans", "spans", "Spans, of blocks of a class and of one large block.",
				func(r *row) float64 { return float64(r.heap.spans) }),
			gauge("cheap_heap_large_blocks", "blocks", "large", "Blocks in use of more than 64 KiB.",
				func(r *row) float64 { return float64(r.heap.LargeBlocks) }),
			gauge("cheap_heap_large_bytes", "bytes", "their bytes", "Usable bytes of these.",
				func(r *row) float64 { return float64(r.heap.LargeBytes) }),
			counter("cheap_heap_mallocs_total", "blocks", "mallocs", "Blocks that were handed out.",
				func(r *row) float64 { return float64(r.heap.Mallocs) }),
			counter("cheap_heap_frees_total", "blocks", "frees", "Blocks that were freed.",
				func(r *row) float64 { return float64(r.heap.Frees) }),
			counter("cheap_heap_malloc_bytes_total", "bytes", "malloc bytes", "Usable bytes of the blocks of up to 64 KiB that were handed out, without those that a Local has handed out.",
				func(r *row) float64 { return float64(r.heap.mallocBytes) }),
			counter("cheap_heap_consolidations_total", "times", "consolidations", "How often free blocks were sorted into their spans before the heap grew.",
				func(r *row) float64 { return float64(r.heap.Consolidations) }),
		},
	},
	{
		name: "classes", title: "Size classes",
		about:  "Blocks by their size, in all heaps. A class that was never used is not there.",
		labels: []string{"size"},
		rows: func(s *snapshot, emit func([]string, row)) {
			for i := range s.classes {
				emit(s.classes[i].labels, row{class: &s.classes[i]})
			}
		},
		columns: []column{
			gauge("cheap_class_blocks", "blocks", "blocks", "Blocks in use.",
				func(r *row) float64 { return float64(r.class.Blocks) }),
			gauge("cheap_class_allocated_bytes", "bytes", "allocated", "Bytes of the blocks in use.",
				func(r *row) float64 { return float64(r.class.bytes) }),
			gauge("cheap_class_spans", "spans", "spans", "Spans that have blocks of the class.",
				func(r *row) float64 { return float64(r.class.Spans) }),
			gauge("cheap_class_waste_bytes", "bytes", "waste", "Bytes of blocks that were made and are not in use. The part of a span of which no block was made is not among them.",
				func(r *row) float64 { return float64(max(r.class.carvedBytes-r.class.bytes, 0)) }),
			gauge("cheap_class_cached_blocks", "blocks", "cached", "Free blocks in caches.",
				func(r *row) float64 { return float64(r.class.Cached) }),
			counter("cheap_class_mallocs_total", "blocks", "mallocs", "Blocks that were handed out, in destroyed heaps as well, without those that a Local has handed out.",
				func(r *row) float64 { return float64(r.class.Mallocs) }),
			counter("cheap_class_malloc_bytes_total", "bytes", "malloc bytes", "Bytes of these.",
				func(r *row) float64 { return float64(r.class.mallocBytes) }),
		},
	},
	{
		name: "accounts", title: "Accounts",
		about:  "What is counted besides heaps: the resources of all pools, and what programs report to a pace.Account.",
		labels: []string{"account", "number"},
		rows: func(s *snapshot, emit func([]string, row)) {
			for i := range s.accounts {
				emit(s.accounts[i].labels, row{account: &s.accounts[i]})
			}
		},
		columns: []column{
			gauge("cheap_account_held_bytes", "bytes", "held", "Bytes in the account.",
				func(r *row) float64 { return float64(r.account.held) }),
			gauge("cheap_account_limit_bytes", "bytes", "limit", "The account's own limit, or 0.",
				func(r *row) float64 { return float64(r.account.limit) }),
			gauge("cheap_account_live_bytes", "bytes", "live", "Bytes that are in use.",
				func(r *row) float64 { return float64(r.account.live) }),
			gauge("cheap_account_live", "resources", "resources", "Resources that are in use.",
				func(r *row) float64 { return float64(r.account.blocks) }),
		},
	},
	{
		name: "pools", title: "Pools",
		about:  "Each own.Pool and own.Memory, and what the collector had to release there because it was not closed.",
		labels: []string{"pool", "number"},
		rows: func(s *snapshot, emit func([]string, row)) {
			for i := range s.pools {
				emit(s.pools[i].labels, row{pool: &s.pools[i]})
			}
		},
		columns: []column{
			gauge("cheap_pool_live", "owners", "live", "Resources that are owned and not released, queued ones included.",
				func(r *row) float64 { return float64(r.pool.Live) }),
			gauge("cheap_pool_live_bytes", "bytes", "bytes", "Their sizes, and those of resources made in advance.",
				func(r *row) float64 { return float64(r.pool.Bytes) }),
			gauge("cheap_pool_made", "resources", "made ahead", "Resources made in advance and not handed out.",
				func(r *row) float64 { return float64(r.pool.Made) }),
			gauge("cheap_pool_open_batches", "batches", "open batches", "Batches of owners that are not registered with the collector yet.",
				func(r *row) float64 { return float64(r.pool.Open) }),
			counter("cheap_pool_created_total", "owners", "created", "Owners that were made.",
				func(r *row) float64 { return float64(r.pool.Created) }),
			counter("cheap_pool_released_total", "owners", "released", "Owners whose resource was released, or that were disowned.",
				func(r *row) float64 { return float64(r.pool.Created - r.pool.Live) }),
			counter("cheap_pool_collected_total", "owners", "by the collector", "Of these, those that the collector had to find. The program has closed the others.",
				func(r *row) float64 { return float64(r.pool.Collected) }),
			gauge("cheap_pool_queued", "releases", "queued", "Releases that wait for Drain or for the pool's thread.",
				func(r *row) float64 { return float64(r.pool.Queued) }),
			gauge("cheap_pool_oldest_queued_seconds", "seconds", "oldest", "How long the first of these has waited.",
				func(r *row) float64 { return time.Duration(r.pool.Oldest).Seconds() }),
		},
	},
	{
		name: "cmem", title: "C heap",
		about: "What C libraries allocate by themselves, in a program that imports module cmem. The blocks of package libc are among it.",
		state: cmemState,
		rows: func(s *snapshot, emit func([]string, row)) {
			if s.c != nil {
				emit(nil, row{})
			}
		},
		columns: []column{
			gauge("cheap_cmem_live_bytes", "bytes", "in use", "Bytes of the blocks in use: an estimate, of those that were allocated since sampling began, or with CHEAP_CMEM=exact in the environment exact, of all.",
				func(r *row) float64 { return float64(r.all.c.Live) }),
			gauge("cheap_cmem_live_error_bytes", "bytes", "its error", "The standard deviation of that estimate, or 0.",
				func(r *row) float64 { return float64(r.all.c.LiveError) }),
			counter("cheap_cmem_mallocs_total", "calls", "mallocs", "Calls that allocate, exact. A realloc is one of these, and one that frees.",
				func(r *row) float64 { return float64(r.all.c.Mallocs) }),
			counter("cheap_cmem_frees_total", "calls", "frees", "Calls that free, exact.",
				func(r *row) float64 { return float64(r.all.c.Frees) }),
			counter("cheap_cmem_malloc_bytes_total", "bytes", "malloc bytes", "Bytes that these calls have asked for, exact.",
				func(r *row) float64 { return float64(r.all.c.Bytes) }),
			counter("cheap_cmem_samples_total", "blocks", "samples", "Blocks that were sampled.",
				func(r *row) float64 { return float64(r.all.c.Samples) }),
			counter("cheap_cmem_lost_samples_total", "blocks", "lost samples", "Blocks that were not sampled, because there was no memory to note them.",
				func(r *row) float64 { return float64(r.all.c.Lost) }),
		},
	},
	{
		name: "libraries", title: "C heap by library",
		about:  "Which library has allocated the blocks of the C heap: that of the innermost function that does not allocate for others. All figures are estimates.",
		labels: []string{"library"},
		state:  cmemState,
		rows: func(s *snapshot, emit func([]string, row)) {
			for i := range s.libraries {
				emit(s.libraries[i].labels, row{library: &s.libraries[i]})
			}
		},
		columns: []column{
			gauge("cheap_cmem_library_live_bytes", "bytes", "in use", "Bytes of the blocks in use.",
				func(r *row) float64 { return float64(r.library.Live) }),
			gauge("cheap_cmem_library_blocks", "blocks", "blocks", "Blocks in use.",
				func(r *row) float64 { return float64(r.library.Blocks) }),
			counter("cheap_cmem_library_malloc_bytes_total", "bytes", "malloc bytes", "Bytes that were allocated since sampling began.",
				func(r *row) float64 { return float64(r.library.Allocs) }),
		},
	},
}

func gauge(name, unit, head, help string, get func(*row) float64) column {
	return column{Metric{Name: name, Unit: unit, Help: help, Kind: Gauge}, head, get}
}

func counter(name, unit, head, help string, get func(*row) float64) column {
	return column{Metric{Name: name, Unit: unit, Help: help, Kind: Counter}, head, get}
}

func (s *snapshot) idleBytes() int64 { return s.totals.Idle*span.UnitSize + s.totals.Tails }

func (s *snapshot) metadata() int64 { return s.system.Mapped }

// mapped is whole units, whole mappings, and metadata.
func (s *snapshot) mapped() int64 {
	return s.totals.Units*span.UnitSize + s.totals.Mapped + s.metadata()
}

// retained is the address space of regions, but for units in use and idle ones, and that behind
// the memory of mappings.
func (s *snapshot) retained() int64 {
	units := s.totals.Regions * (span.RegionSize / span.UnitSize)
	return max(units-s.totals.Units-s.totals.Idle, 0)*span.UnitSize + max(s.totals.Space-s.totals.Mapped, 0)
}

//go:build ignore

// The files that are mapped, and the tables for unwinding that they have, without a lock of the dynamic linker. From
// glibc 2.35 on libgcc finds tables by _dl_find_object, which takes none. Before, it has dl_iterate_phdr call a
// function for each file, with a lock held: a program may wait for this thread in such a call of its own.
//
// The files that were mapped when the program began are found by dl_iterate_phdr, at that moment. Others are found in
// the list that the dynamic linker has for debuggers, when an address is in no file that is known. Another thread may
// change the list meanwhile, so it is read as memory that may not be mapped. A file that is on the stack stays mapped.
// Not every file that is unmapped is counted: the C library unloads those of iconv by itself. So the headers of a file
// that was found before are read again each time.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

// A module is a file that is mapped.
struct mapped {
	uintptr_t from, to;
	uintptr_t code, code_end; // the part of it with code; there may be memory of others between parts
	uintptr_t header;         // of the tables: .eh_frame_hdr; or 0
	uintptr_t base;           // where its own header lies, if it was loaded later
};

// The first initial ones were there when the program began. The lock is held to read or write the others. Those
// beyond most_modules are not known.
enum { most_modules = 512 };
#ifdef __GLIBC__
enum { unloads = 1 };
#else
enum { unloads = 0 }; // dlclose of musl does nothing
#endif
static struct mapped modules[most_modules];
static int initial, num_modules;
static uint32_t closed_when;     // cmem_closed when the others were found
static struct r_debug *debugger; // the list of the dynamic linker

// describe writes where a file is mapped.
static void describe(const struct dl_phdr_info *info, struct mapped *m) {
	*m = (struct mapped){.code = UINTPTR_MAX};
	cmem_extent(info, &m->from, &m->to);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_GNU_EH_FRAME)
			m->header = at;
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		if (at < m->code)
			m->code = at;
		if (at + p->p_memsz > m->code_end)
			m->code_end = at + p->p_memsz;
	}
}

static int first(struct dl_phdr_info *info, size_t size, void *arg) {
	if (initial == most_modules)
		return 1;
	describe(info, &modules[initial]);
	num_modules = ++initial;
	return cmem_late && unloads; // then only the program is known to stay
}

void cmem_modules_start(void) {
	if (initial == 0)
		dl_iterate_phdr(first, 0);
#ifdef __GLIBC__
	debugger = dlsym(RTLD_DEFAULT, "_r_debug");
#else
	struct r_debug **at = dlsym(RTLD_DEFAULT, "_dl_debug_addr");
	debugger = at ? *at : 0;
#endif
}

static struct mapped *find(uintptr_t pc, int from, int to) {
	for (int i = from; i < to; i++)
		if (pc >= modules[i].from && pc < modules[i].to)
			return &modules[i];
	return 0;
}

int cmem_initial(uintptr_t pc) { return find(pc, 0, initial) != 0; }

// read_module reads the headers of a file that lies at base.
static int read_module(int fd, uintptr_t base, struct mapped *m) {
	ElfW(Ehdr) e;
	ElfW(Phdr) all[32];
	if (cmem_read_memory(fd, &e, base, sizeof e) != sizeof e || memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 ||
		e.e_phnum == 0 || e.e_phnum > sizeof all / sizeof *all ||
		cmem_read_memory(fd, all, base + e.e_phoff, e.e_phnum * sizeof *all) != e.e_phnum * sizeof *all)
		return 0;
	struct dl_phdr_info info = {.dlpi_addr = base, .dlpi_phdr = all, .dlpi_phnum = e.e_phnum};
	describe(&info, m);
	m->base = base;
	return 1;
}

// look_again finds the modules that the program has loaded since it began. The caller holds the lock.
static void look_again(void) {
	struct r_debug list;
	struct link_map one;
	int fd = cmem_open_memory(), n = initial;
	uintptr_t next = 0;
	if (cmem_read_memory(fd, &list, (uintptr_t)debugger, sizeof list) == sizeof list)
		next = (uintptr_t)list.r_map;
	for (int i = 0; next != 0 && i < 4 * most_modules && n < most_modules; i++) {
		if (cmem_read_memory(fd, &one, next, sizeof one) != sizeof one)
			break;
		if (one.l_addr != 0 && !find(one.l_addr, 0, initial) && read_module(fd, one.l_addr, &modules[n]))
			n++;
		next = (uintptr_t)one.l_next;
	}
	num_modules = n;
}

// find_later finds a module that was loaded since, if it is still as it was. The caller holds the lock.
static struct mapped *find_later(uintptr_t pc) {
	struct mapped now = {0}, *m = find(pc, initial, num_modules);
	if (!m || !read_module(cmem_open_memory(), m->base, &now) || now.from != m->from || now.to != m->to ||
		now.header != m->header)
		return 0;
	return m;
}

// module_of copies the module that has the address.
static int module_of(uintptr_t pc, struct mapped *to) {
	struct mapped *m = find(pc, 0, initial);
	sigset_t old;
	if (m) {
		*to = *m;
		return 1;
	}
#ifdef CMEM_SHARED
	struct object o;
	if (cmem_find_object) {
		if (cmem_find_object((void *)pc, &o) != 0)
			return 0;
		uintptr_t from = (uintptr_t)o.from, end = (uintptr_t)o.to;
		*to = (struct mapped){.from = from, .to = end, .code = from, .code_end = end, .header = (uintptr_t)o.frames};
		return 1;
	}
#endif
	cmem_lock(&old);
	uint32_t closed = __atomic_load_n(&cmem_closed, __ATOMIC_SEQ_CST);
	if (closed != closed_when || !(m = find_later(pc))) {
		closed_when = closed;
		look_again();
		m = find(pc, initial, num_modules);
	}
	if (m)
		*to = *m;
	cmem_unlock(&old);
	return m != 0;
}

int cmem_in_module(uintptr_t pc) {
	struct mapped m;
	return module_of(pc, &m) && pc >= m.code && pc < m.code_end;
}

int cmem_module_of(uintptr_t pc, uintptr_t *from, uintptr_t *to) {
	struct mapped m;
	if (!module_of(pc, &m))
		return 0;
	*from = m.from;
	*to = m.to;
	return 1;
}

// How a table encodes an address, of the DWARF of exceptions.
enum {
	absolute = 0,
	signed4 = 0x0b,
	unsigned4 = 0x03,
	signed8 = 0x0c,
	unsigned8 = 0x04,
	relative = 0x10,
	to_header = 0x30
};

// encoding_of returns how the tables of a CIE encode addresses, or -1 if that is not known here.
static int encoding_of(const uint8_t *cie) {
	const char *text = (const char *)cie + 9;
	const uint8_t *at = cie + 9 + strlen(text) + 1;
	if (*text == 0)
		return absolute;
	if (*text != 'z')
		return -1;
	for (int numbers = cie[8] == 1 ? 2 : 3; numbers > 0;
		 numbers--) // the units of code and data, and where a return address is
		while (*at++ & 0x80)
			;
	if (cie[8] == 1)
		at++;
	while (*at++ & 0x80)
		; // the length of what follows
	for (const char *c = text + 1; *c; c++)
		switch (*c) {
		case 'R': return *at;
		case 'L': at++; break;
		case 'P':
			if ((*at & 0x0f) == signed4 || (*at & 0x0f) == unsigned4)
				at += 5;
			else if ((*at & 0x7f) == 0x50) // aligned
				return -1;
			else
				at += 9;
			break;
		case 'S':
		case 'B': break;
		default: return -1;
		}
	return -1;
}

// covers reports whether a table is that of the address, and where the function begins.
static int covers(const uint8_t *fde, uintptr_t pc, void **function) {
	uint32_t length, back;
	memcpy(&length, fde, sizeof length);
	memcpy(&back, fde + 4, sizeof back);
	if (length == 0 || length == UINT32_MAX || back == 0)
		return 0;
	int encoding = encoding_of(fde + 4 - back);
	const uint8_t *at = fde + 8;
	uintptr_t begin, size;
	if (encoding == (relative | signed4)) {
		int32_t b;
		uint32_t s;
		memcpy(&b, at, sizeof b);
		memcpy(&s, at + 4, sizeof s);
		begin = (uintptr_t)at + b;
		size = s;
	} else if (encoding == absolute || encoding == (relative | signed8)) {
		memcpy(&begin, at, sizeof begin);
		memcpy(&size, at + sizeof begin, sizeof size);
		if (encoding != absolute)
			begin += (uintptr_t)at;
	} else {
		return 0;
	}
	*function = (void *)begin;
	return pc - begin < size;
}

const void *cmem_module_table(uintptr_t pc, void **function) {
	struct mapped m;
	if (!module_of(pc, &m) || m.header == 0)
		return 0;
	// Version 1; where the tables are; how many there are; an array, by address.
	const uint8_t *header = (const uint8_t *)m.header;
	struct entry {
		int32_t begin, table; // from the header on
	} *all = (struct entry *)(header + 12);
	uint32_t n;
	if (header[0] != 1 || (header[1] & 0x0f) != signed4 || header[2] != unsigned4 || header[3] != (to_header | signed4))
		return 0;
	memcpy(&n, header + 8, sizeof n);
	uint32_t from = 0, to = n;
	while (from < to) {
		uint32_t i = from + (to - from) / 2;
		if (m.header + all[i].begin <= pc)
			from = i + 1;
		else
			to = i;
	}
	if (from == 0)
		return 0;
	const uint8_t *fde = header + all[from - 1].table;
	return covers(fde, pc, function) ? fde : 0;
}

package executable

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// moreRights returns an error if a program gets other rights than this process when it starts. The
// kernel says so to the dynamic linker (AT_SECURE), which then preloads no library that a path names.
func moreRights(file *os.File) error {
	var st unix.Stat_t
	var fs unix.Statfs_t
	fd := int(file.Fd())
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if err := unix.Fstatfs(fd, &fs); err != nil {
		return err
	}
	if fs.Flags&unix.ST_NOSUID != 0 {
		return nil
	}
	capabilities := false
	if n, err := unix.Fgetxattr(fd, "security.capability", nil); err == nil && n > 0 {
		capabilities = true
	}
	noNew, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	why := rights(st.Mode, st.Uid, st.Gid, capabilities, uint32(os.Getuid()), uint32(os.Getgid()), err == nil && noNew == 1)
	if why == "" {
		return nil
	}
	return fmt.Errorf("%s %s, so it gets other rights than this command, and the dynamic linker preloads no library into it (AT_SECURE); record a copy of it that has no such mark", file.Name(), why)
}

// rights says by which mark of its file a program gets other rights than a process of a user and a
// group, or "". Of a process that is to get no new privileges, the kernel disregards the first two.
func rights(mode, owner, group uint32, capabilities bool, uid, gid uint32, noNew bool) string {
	const setgid = syscall.S_ISGID | syscall.S_IXGRP // without the second it is another mark
	switch {
	case mode&syscall.S_ISUID != 0 && owner != uid && !noNew:
		return fmt.Sprintf("is setuid, of the user %d", owner)
	case mode&setgid == setgid && group != gid && !noNew:
		return fmt.Sprintf("is setgid, of the group %d", group)
	case capabilities && uid != 0:
		return "has file capabilities"
	}
	return ""
}

// What Docker's seccomp profile refuses to a container without rights, as a filter of the kernel, which is
// written to the standard output: glibc starts threads by clone where it is told that there is no clone3.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>

static const int refused[] = {
	SYS_acct, SYS_add_key, SYS_bpf, SYS_clock_adjtime, SYS_clock_settime, SYS_delete_module, SYS_fanotify_init,
	SYS_finit_module, SYS_fsconfig, SYS_fsmount, SYS_fsopen, SYS_fspick, SYS_get_mempolicy, SYS_init_module,
	SYS_io_uring_enter, SYS_io_uring_register, SYS_io_uring_setup, SYS_kcmp, SYS_kexec_load, SYS_keyctl,
	SYS_lookup_dcookie, SYS_mbind, SYS_mount, SYS_move_mount, SYS_move_pages, SYS_open_by_handle_at, SYS_open_tree,
	SYS_perf_event_open, SYS_pidfd_getfd, SYS_pivot_root, SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace,
	SYS_quotactl, SYS_reboot, SYS_request_key, SYS_set_mempolicy, SYS_setdomainname, SYS_sethostname, SYS_setns,
	SYS_settimeofday, SYS_swapoff, SYS_swapon, SYS_syslog, SYS_umount2, SYS_unshare, SYS_userfaultfd, SYS_vhangup,
};

static void put(int code, int yes, int no, unsigned k) {
	struct sock_filter f = {code, yes, no, k};
	fwrite(&f, sizeof f, 1, stdout);
}
static void refuse(int number, int e) {
	put(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number);
	put(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | e);
}

int main(void) {
	put(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
	for (int i = 0; i < sizeof refused / sizeof *refused; i++)
		refuse(refused[i], EPERM);
	refuse(435, ENOSYS); // clone3
	put(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW);
	return 0;
}

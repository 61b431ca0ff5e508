package loop

import "syscall"

// announce shows the scheduler that this goroutine runs on, by a system call that it hears of. Its
// monitor thread sleeps while the process rests, and the bare system calls of package transport do
// not wake it. Without the monitor nothing preempts a busy loop: on one CPU nobody else would run.
func announce() { _, _, _ = syscall.Syscall(syscall.SYS_GETPID, 0, 0, 0) }

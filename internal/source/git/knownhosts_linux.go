package git

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// asFile gives what only reads files a text, through memory: the hub's pod can
// write nothing but its cache.
func asFile(name string, text []byte) (path string, closeFile func(), err error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return "", nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), name)
	if _, err := file.Write(text); err != nil {
		_ = file.Close()
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d", fd), func() { _ = file.Close() }, nil
}

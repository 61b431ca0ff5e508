package files

import "errors"

// LockName is the file whose lock owns the folder. KahaDB's is called the same, so that a Java
// broker and this one exclude each other.
const LockName = "lock"

// ErrInUse says that somebody else holds the lock.
var ErrInUse = errors.New("in use")

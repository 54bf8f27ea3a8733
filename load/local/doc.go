// Package local is the destination on a local disk: a folder.
//
// A staged object is a file under <root>/.formetl/<run>/ with no extension,
// whose name holds something random, when it was begun, and the final name, so
// that what a killed process leaves can be told. Prepare flushes it, syncs it,
// checks its length and syncs its folder; Commit links it under its final name,
// which never overwrites (or renames it, where it replaces a single file), and
// syncs the folders. Small objects are written whole to a file beside the
// staged ones and renamed. So a reader sees a whole object or none, and what
// was reported as done survives a power cut. Files are made 0640 and folders
// 0750, less what the umask takes away.
//
// Every path is resolved by os.Root: a symbolic link inside the root is
// followed as long as it stays inside, and one that leads out of it is an
// error. The root itself may be a link. A final name that is a link is
// replaced as a link: what it points to is not touched.
//
// Locks are flock(2) locks on files in .formetl, so they vanish with the
// process that holds them. A lease is held alone; who asks whether it is held
// shares its lock for a moment, and who takes one tells that from a holder. A
// folder on a network file system needs one whose locks work across hosts
// (NFS 4 does); otherwise keep to one host.
//
// The control folder is removed as soon as nothing is left in it.
package local

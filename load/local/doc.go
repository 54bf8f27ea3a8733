// Package local is the destination in a folder on a local disk.
//
// A staged object is a file under <root>/.formetl/<run>/. Its name holds
// something random, the time and the final name, and no extension, so that
// leftovers of a killed process can be identified. Prepare writes it, syncs it,
// checks its length and syncs its folder. Commit links it under its final name,
// which never overwrites, or renames it, where it replaces a single file; then
// it syncs the folders. Put writes small objects to a file in .formetl first and
// renames it. So a reader sees a whole object or none, and what was reported as
// done survives a power cut. Files get the mode 0640 and folders 0750, less the
// umask.
//
// Every path is resolved by os.Root. A symbolic link inside the root is followed
// as long as it stays inside. A link that leads out of it is an error. The root
// itself may be a link. A final name that is a link is replaced as a link.
//
// Locks are flock(2) locks on files in .formetl, so they end with the process
// that holds them. A run holds its lease exclusively. Whoever only asks whether a
// lease is held shares its lock for a moment, which Acquire can tell from a
// holder. A folder on a network file system needs locks that work across hosts
// (NFS 4 has them); otherwise all runs must be on one host.
//
// The package removes the control folder as soon as it is empty. It knows nothing
// of manifests or formats. Begin reading with Stage (stage.go) and Commit
// (commit.go); lock.go holds the lease.
package local

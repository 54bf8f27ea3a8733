// Package local is the destination in a folder on a local disk.
//
// A staged object is a file under <root>/.formetl/<run>/. The file's name has no extension. It
// holds random letters and the final name, so that leftovers of a killed process can be
// identified. Prepare writes and syncs the file, checks its length and syncs its folder.
// Commit renames it to its final name, if that is free or a single file is replaced, and syncs
// the folders. Put writes small objects to a file in .formetl first and renames that file. So
// a reader sees a whole object or none, and what was reported as done survives a power cut.
// Files get the mode 0640 and folders 0750, less the umask.
//
// Every path is resolved by os.Root. A symbolic link inside the root is followed
// as long as it stays inside. A link that leads out of it is an error. The root
// itself may be a link. If a final name is a link, the link itself is replaced.
//
// Locks are flock(2) locks on files in .formetl, so they end with the process
// that holds them. A run locks its lease exclusively. A process that only asks
// whether a lease is held takes a shared lock for a moment, so Acquire waits a
// little before it says that another run holds it. A folder on a network file
// system needs locks that work across hosts, as NFS 4 has. Otherwise all runs
// must be on one host.
//
// The package removes the control folder as soon as it is empty. It knows nothing
// of manifests or formats. Begin reading with Stage (stage.go) and Commit
// (commit.go); lock.go holds the lease.
package local

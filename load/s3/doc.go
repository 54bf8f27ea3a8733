// Package s3 is the destination in a bucket: a prefix of Amazon S3 or of a
// store that speaks its protocol.
//
// A staged object is a multipart upload whose parts are all sent and which is
// not completed: nobody who lists the bucket's objects finds it. Prepared
// holds the upload's id and its parts' tags, so that any process can complete
// or abort it. Commit completes it on the condition that the final name is
// free (If-None-Match: *), except where a single file is replaced. An empty
// object cannot be an upload and is put at commit.
//
// No store tells whose an unfinished upload is, and not every store lists them:
// each has a marker, .formetl/<run>/staged-<id>, from before its first part
// until it is committed or aborted. What dead runs left is found by the markers
// and, where the store lists them, by the uploads that have none: those have no
// run, and may be other programs'.
//
// Every upload carries a random id in its metadata (formetl-id), set when it
// is begun, so a commit that is done again, or whose answer was lost, knows
// its own object. An object of the same length with another id is read and
// its SHA-256 compared; ETags are not relied on, as they depend on
// encryption.
//
// The versions of small objects are ETags, and Put is conditional on them.
// Put marks what it writes with an id too: where the SDK's own retry meets
// the object that its first attempt wrote, that is no conflict.
//
// AWS honours conditions. Another store is asked once for each Destination,
// before the first condition matters, by writing to a probe object in the
// control folder. Where conditions are ignored, the second best is done: look
// before, write, look after whose object it is. Two runs that write within
// the same moment can then overwrite each other, so there the lease is the
// only guard, and it is taken with a pause before its check.
//
// The lease is an object in the control folder, written on condition, renewed
// every 15 s and free for others 60 s after its last renewal. Its age is the
// difference of two times that the store itself tells, so the clocks of hosts
// need not agree.
//
// A request that stands still fails: after a minute in which the store takes
// nothing of it, after 45 s in which it does not answer, or three minutes where it completes
// an upload.
//
// Memory is part size times parts in flight for each upload under way.
package s3

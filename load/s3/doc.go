// Package s3 is the destination in a bucket: a prefix of Amazon S3 or of a store
// that speaks its protocol.
//
// A staged object is a multipart upload whose parts are all sent and which is not completed,
// so no listing of objects shows it. Prepared.Staged holds the upload's id and the ETags of
// its parts, so any process can complete or abort the upload. Commit completes the upload on
// condition that the final name is free (If-None-Match: *), unless it replaces a single file.
// An upload needs at least one byte, so an empty object is written only at commit.
//
// No store tells which program began an upload, and not every store lists
// uploads. So each upload has a marker, .formetl/<run>/staged-<id>, from before
// its first part until it is committed or aborted. By these markers Staged
// finds what dead runs left. If the store lists uploads, those without a marker
// are found too. Their run is unknown, and they may belong to other programs.
//
// Each upload has a random id in its metadata (formetl-id). A commit that is
// done again, or whose answer was lost, finds its own object by this id. An
// object of the same length with another id is read and its SHA-256 compared.
// ETags are not compared, because they depend on the encryption.
//
// The versions of small objects are their ETags, and Put sends them as
// conditions. Put sets an id too. So it is no conflict if the SDK's retry meets
// the object that its first attempt wrote.
//
// AWS honours the conditions of writes. Any other store is asked once for each Destination,
// after the first write with a condition: it must refuse two more writes of the same object
// whose conditions do not hold. A store that does not refuse them cannot be used, because
// nothing would keep two runs apart there.
//
// The lease is an object in the control folder. It is written on condition and
// renewed every 15 s, and others may take it 60 s after its last renewal. Its age
// is the difference of two times that the store itself gives, so the clocks of
// hosts may differ.
//
// A request fails if the store accepts no bytes for a minute, or does not answer
// within 45 s. Completing an upload may take three minutes. Each upload under way
// needs memory of the part size times the parts in flight.
//
// The package knows nothing of manifests or formats, and it makes no bucket.
// Begin reading with Destination (s3.go), then stage.go and commit.go.
package s3

// Package transport sends requests to a server that may be slow, busy, away or
// replaced by a proxy's error page, and hands each answer to its caller's
// decoder.
//
// A Sender belongs to one server and account. An attempt of a request passes
// three things in this order: the gate (most requests under way at once), the
// circuit (while the server is away only one request at a time tries it) and
// the Budget (requests per minute and day). What failed and may succeed later
// is tried again after a growing pause, for two minutes at most. Every attempt
// is counted with its outcome. The API key is a Secret: the sender adds it to
// the address and removes it from every error and log line.
//
// The package knows no format and no transaction. A generation of the service
// (extract/v1) builds the Call, decodes the body, and classes the errors that
// the service itself answers with (Refusal). Pages, windows and ids are
// unknown here. Begin reading at Sender.Send.
//
// # Why no library
//
// failsafe-go v0.9.8 was read for the gate and the circuit, and neither fits.
// Its adaptive limiter derives the bound from response times; an answer that
// says "busy" only gives the permit back. It would raise the bound of a service
// that refuses quickly. Our gate halves the bound at a busy answer and raises
// it after good ones, which takes fewer lines than the library's settings. Its
// circuit breaker refuses requests while it is open. Here they wait, because a
// run has nothing better to do. Pauses come from cenkalti/backoff.
package transport

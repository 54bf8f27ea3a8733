// Package transport sends requests and hands each answer to its caller's
// decoder. The server may be slow, busy, away, or hidden behind a proxy.
//
// A Sender belongs to one server and account. An attempt of a request passes the
// gate, the circuit and the Budget, in this order. The gate bounds the requests
// under way at once. The circuit lets only one request at a time try a server
// that is away. The Budget bounds the requests per minute and day. An attempt that
// failed and may succeed later is repeated, within Config.Patience. Every attempt
// is counted with its outcome. The API key is a Secret: the sender adds it to
// the address and removes it from every error and log line.
//
// The package knows no format and no transaction. A generation of the service
// (extract/v1, extract/v2) builds the Call and decodes the body. Of what the service answers,
// this package knows its errors (ServiceError). It does not know pages, windows or ids.
// Begin reading at Sender.Send; what an error means for another attempt is in meaningOf.
//
// # Why no library
//
// failsafe-go v0.9.8 was considered for the gate and the circuit, but does not fit.
// Its adaptive limiter derives the bound from response times and has no signal
// for an answer that says "busy": Record would count such an answer as a fast
// one, and Drop leaves the bound as it is. Our gate halves the bound at a busy
// answer and raises it after good ones, in fewer lines than the settings of the
// library. Its circuit breaker refuses requests while it is open, and here they
// wait. Pauses come from cenkalti/backoff.
package transport

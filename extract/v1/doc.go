// Package v1 speaks the XML generation of a Form Results Service. Its Client is an
// extract.Client for answers in XML.
//
// A Client turns a query into the parameters of a transaction, sends it by a
// transport.Sender, and decodes the answer. Get Results is decoded into a
// page.Page by a scanner of our own, which makes spans of the answer's bytes
// instead of copies. The decoder guesses each cell by the previous result. The
// other answers are small and are decoded into a tree. Decoding is strict:
// characters that XML 1.0 forbids are replaced and counted, and anything else
// that is wrong is an error. The error names the place and never quotes it.
//
// Retries, pauses and the bound on requests are in extract/transport, paging
// and windows in extract. Begin reading at Client.Results, and for the decoder
// at decoder.decode.
package v1

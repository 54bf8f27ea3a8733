// Package extract reads results from a Form Results Service: it plans a range
// of time into windows, pages Get Results through each window, and decodes
// every answer strictly into a Page.
//
// The package knows the service and nothing else: no schema, no file format,
// no destination. It never repairs an answer silently: what it replaces it
// counts, and what it cannot read is an error that names the request.
package extract

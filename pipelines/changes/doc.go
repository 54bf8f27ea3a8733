// Package changes finds out what changed at the service since earlier runs.
//
// The results that changed last are one query: they are sorted by date_update
// (see extract.ReadFeed). A run asks it before it reads anything. Ask compares
// the answer with what the manifests say is known, and names the changes that
// the datasets do not hold yet. With them an incremental run reads only the
// parts that changed, whatever their age.
//
// A service may ignore fs_sort, and results may lack date_update. So Ask wants a
// proof that the service sorts. Without one the run reads its lookback, and the
// manifest says why.
//
// KnownTo is the moment up to which changes are known, by the service's clock.
// The next run reads the feed back to Margin before it, because that clock may
// be set back. Of this margin the manifest lists the changes that are known.
// Our own clock is used only to read further back, never less far. date_update has
// whole seconds. So Ask waits until the second of the newest change is over, if a
// result that changed then is read. A later change of it has another time.
//
// The package reads no results and writes nothing. Begin reading with Ask.
package changes

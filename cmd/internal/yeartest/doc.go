// Package yeartest lives through a year with the real formetl. It holds tests
// only.
//
// The binary is built with the tag formetl_faults and told what time it is:
// it runs every virtual hour, as a process of its own, against a form service
// whose results the test adds, finishes late, edits and deletes meanwhile, and
// while it runs. The service has outages and busy storms, the budget runs out,
// the machine's clock is wrong now and then, and the process is killed. After
// every run the test reads the datasets with its own eyes and compares them
// with what it knows of every state that every result ever had; it counts what
// the service was asked, too.
//
// The service stamps each change by a clock of its own, which is minutes off and
// jumps. Results of any age are edited and deleted. A run that knew what had
// changed must leave a dataset that holds the truth of any age, apart from what
// the manifest says is stale. Every other run is held to the lookback.
// FORMETL_YEAR_SORT=off has the service ignore fs_sort, and
// FORMETL_YEAR_CHANGES=lookback has the definitions say so.
//
// It is a world for two days around a change of the clocks, and where every test
// is asked for one for each week around such a change.
// FORMETL_YEAR_WEEKS=52 is one world of a year, FORMETL_YEAR_SEED another
// course of events; every failure names both. Requests that are under way side
// by side may come in another order when they are replayed.
package yeartest

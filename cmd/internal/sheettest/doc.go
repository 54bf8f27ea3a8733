// Package sheettest opens what formetl writes for spreadsheets in a real one,
// LibreOffice Calc, and compares the cells. It holds tests only.
package sheettest

package sheets

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// isWord tells whether a spreadsheet would change a text of letters. It takes
// true and false for booleans and writes them in capitals. It takes the name of
// a month with a day or a year for a date, in the languages of monthNames.
func isWord(s string) bool {
	if isBoolean(strings.TrimSpace(s)) {
		return s != "TRUE" && s != "FALSE"
	}
	return strings.ContainsAny(s, "0123456789") && isMonth(s)
}

func isBoolean(s string) bool { return strings.EqualFold(s, "true") || strings.EqualFold(s, "false") }

// isMonth tells whether a text is the name of a month with one or two numbers,
// and perhaps a time of day: mar 5, 5-mar, SEPT2, May 2026, 5. März 2026, 5 de
// mayo de 2026, march 5, 2026 3:04 PM.
func isMonth(s string) bool {
	months, numbers, before := 0, 0, ""
	for s != "" {
		word, kind := piece(s)
		s = s[len(word):]
		switch kind {
		case letters:
			if name := folded(word); isMonthName(name) {
				months++
			} else if !isParticle(name) {
				return false
			}
		case digits:
			if before != ":" && !strings.HasPrefix(s, ":") { // it is no part of a time of day
				numbers++
			}
		default:
			if strings.Trim(word, " -/.,':\u00a0\u202f\u2019") != "" {
				return false
			}
		}
		before = word
	}
	return months == 1 && (numbers == 1 || numbers == 2)
}

// The kinds of pieces into which piece splits a text.
const (
	letters = iota
	digits
	others
)

// piece returns the first piece of s and its kind: a run of letters, of digits, or of other
// characters.
func piece(s string) (first string, kind int) {
	r, _ := utf8.DecodeRuneInString(s)
	kind = kindOf(r)
	end := strings.IndexFunc(s, func(r rune) bool { return kindOf(r) != kind })
	if end < 0 {
		return s, kind
	}
	return s[:end], kind
}

func kindOf(r rune) int {
	switch {
	case r >= '0' && r <= '9':
		return digits
	case unicode.IsLetter(r), unicode.Is(unicode.Mn, r):
		return letters
	}
	return others
}

// folded returns a word in lower case and without accents, as monthNames spells
// it.
func folded(word string) string {
	word = strings.ToLower(word)
	if strings.IndexFunc(word, func(r rune) bool { return r > unicode.MaxASCII }) < 0 {
		return word
	}
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Mn, r):
			return -1
		case r == 'ı':
			return 'i'
		case r == 'ς':
			return 'σ'
		}
		return r
	}, norm.NFD.String(word))
}

// isParticle tells whether a folded word may stand between a month and its numbers, such as "de".
func isParticle(name string) bool {
	const particles = " de d del г am pm a p "
	return strings.Contains(particles, " "+name+" ")
}

// isEasternDay tells whether a text is a date or a time of day in Chinese,
// Japanese or Korean. It must have at least two numbers: 1月2日.
func isEasternDay(s string) bool {
	return strings.Trim(s, " 0123456789年月日号號時时分秒년월일시분초") == "" &&
		len(strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' })) > 1 &&
		strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) > 0
}

// isMonthName tells whether a folded word is the full or short name of a month.
func isMonthName(name string) bool {
	return strings.Contains(monthNames, " "+name+" ")
}

// monthNames holds the folded names of months from Unicode's locale data: full
// and short, in the forms used alone and beside a day. A name that several
// languages share is listed under the first of them.
const monthNames = " " +
	// English
	"sept january february march april may june july august september october november december jan " +
	"feb mar apr jun jul aug sep oct nov dec " +
	// German
	"mrz januar februar marz mai juni juli oktober dezember okt dez janner " +
	// French
	"janvier fevrier mars avril juin juillet aout septembre octobre novembre decembre janv fevr avr " + //nolint:misspell // French
	"juil " +
	// Spanish
	"enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre ene abr " +
	"ago dic " +
	// Italian
	"gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre gen mag giu lug set " +
	"ott " +
	// Portuguese
	"janeiro fevereiro marco maio junho julho setembro outubro novembro dezembro fev out " +
	// Dutch
	"januari februari maart mei augustus mrt " +
	// Polish
	"styczen stycznia luty lutego marzec marca kwiecien kwietnia maj maja czerwiec czerwca lipiec lipca " +
	"sierpien sierpnia wrzesien wrzesnia pazdziernik pazdziernika listopad listopada grudzien grudnia sty lut kwi cze " +
	"lip sie wrz paz lis gru " +
	// Danish, Norwegian, Swedish
	"marts desember des augusti " +
	// Finnish
	"tammikuu tammikuuta helmikuu helmikuuta maaliskuu maaliskuuta huhtikuu huhtikuuta toukokuu toukokuuta kesakuu kesakuuta heinakuu heinakuuta " +
	"elokuu elokuuta syyskuu syyskuuta lokakuu lokakuuta marraskuu marraskuuta joulukuu joulukuuta tammi helmi maalis huhti " +
	"touko kesa heina elo syys loka marras joulu " +
	// Estonian, Latvian, Lithuanian
	"jaanuar veebruar aprill juuni juuli oktoober detsember jaan veebr dets janvaris februaris aprilis maijs " +
	"junijs julijs augusts septembris oktobris novembris decembris febr sausis sausio vasaris vasario kovas kovo " +
	"balandis balandzio geguze geguzes birzelis birzelio liepa liepos rugpjutis rugpjucio rugsejis rugsejo spalis spalio " +
	"lapkritis lapkricio gruodis gruodzio " +
	// Czech, Slovak
	"leden ledna unor unora brezen brezna duben dubna kveten kvetna cerven cervna cervenec cervence " +
	"srpen srpna zari rijen rijna listopadu prosinec prosince led uno bre dub kve cvn " +
	"cvc srp zar rij pro januara februara marec aprila juna jula augusta septembra oktobra " +
	"novembra decembra " +
	// Croatian, Slovenian
	"sijecanj sijecnja veljaca veljace ozujak ozujka travanj travnja svibanj svibnja lipanj lipnja srpanj srpnja " +
	"kolovoz kolovoza rujan rujna studeni studenoga prosinac prosinca sij velj ozu tra svi kol " +
	"ruj stu junij julij avgust avg " +
	// Hungarian
	"marcius majus junius julius augusztus szeptember marc szept " +
	// Romanian
	"ianuarie februarie martie aprilie iunie iulie septembrie octombrie noiembrie decembrie ian iun iul " +
	// Turkish
	"ocak subat mart nisan mayis haziran temmuz agustos eylul ekim kasim aralik oca sub " +
	"nis haz tem agu eyl eki kas ara " +
	// Russian
	"январь января февраль февраля март марта апрель апреля маи мая июнь июня июль июля " +
	"август августа сентябрь сентября октябрь октября ноябрь ноября декабрь декабря янв февр мар апр " +
	"июн июл авг сент окт нояб дек " +
	// Ukrainian
	"січень січня лютии лютого березень березня квітень квітня травень травня червень червня липень липня " +
	"серпень серпня вересень вересня жовтень жовтня листопад листопада грудень грудня січ лют бер квіт " +
	"трав черв лип серп вер жовт лист груд " +
	// Greek
	"ιανουαριου ιανουαριοσ φεβρουαριου φεβρουαριοσ μαρτιου μαρτιοσ απριλιου απριλιοσ μαιου μαιοσ ιουνιου ιουνιοσ ιουλιου ιουλιοσ " +
	"αυγουστου αυγουστοσ σεπτεμβριου σεπτεμβριοσ οκτωβριου οκτωβριοσ νοεμβριου νοεμβριοσ δεκεμβριου δεκεμβριοσ ιαν φεβ μαρ απρ " +
	"μαι ιουν ιουλ αυγ σεπ οκτ νοε δεκ "

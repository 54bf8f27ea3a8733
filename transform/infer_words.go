package transform

import (
	"strings"
	"unicode"

	"github.com/formetl/formetl/schemas"
)

// label holds the words of a label, an id or an item's type in snake case. A "_"
// stands before, between and after them, so that phrases match whole words only.
type label string

func wordsOf(texts ...string) label {
	var b strings.Builder
	b.WriteByte('_')
	for _, text := range texts {
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '\''
		}) {
			if snake := strings.Trim(schemas.Snake(word), "_"); snake != "" {
				b.WriteString(snake + "_")
			}
		}
	}
	return label(b.String())
}

// has returns the first of the phrases that the label holds, "" for none.
func (l label) has(phrases string) string {
	for phrase := range strings.FieldsSeq(phrases) {
		if strings.Contains(string(l), "_"+phrase+"_") {
			return phrase
		}
	}
	return ""
}

// Words of labels, transliterated as schemas.Snake does it. A phrase has "_" between its
// words. Only whole words match: the word "id" is not in "paid".
//
//nolint:misspell // in many languages
const (
	phoneWords = `phone phones telephone tel mobile cell cellphone handy handynummer telefon telefonnummer mobil mobiltelefon
		mobilnummer rufnummer fax telefax telefono telefone celular movil cellulare portable gsm telefoonnummer telefoon telefonu
		telefonszam puhelin puhelinnumero whatsapp tilephono kineto dian_hua shou_ji denwa jeonhwa hatif jawal nayad dhvni
		dianhua dian_hua_hao_ma shou_ji_hao_ma den_hua tlf nomer_telefona`
	identityWords = `id ids iban bic swift ssn social_security passport passport_number pass reisepass personalausweis ausweis
		ahv avs steuernummer tax vat ust uid ein tin nif nie dni cpf cnpj curp rfc siret siren insurance license licence driver
		fuhrerschein fuehrerschein konto kontonummer account compte cuenta conta rekening bank card karte kreditkarte credit_card`
	postalWords = `zip zipcode postal postcode plz postleitzahl npa cap cep codigo_postal code_postal pincode pin_code postnummer
		postinumero kodpocztowy kod_pocztowy you_bian youbian`
	// codeWords are words of labels that also suggest numbers that identify something.
	codeWords = `number numbers nummer num nr no numero numeros numer nomer nomor hao hao_ma bango beonho raqm mispar
		code codes kod kode codigo codice reference ref referenz referencia reference_number riferimento order_no order bestellung
		commande pedido ordine invoice rechnung facture factura fattura ticket tracking barcode ean gtin isbn issn asin sku serial
		seriennummer matricule matrikel matrikelnummer kundennummer mitgliedsnummer personalnummer customer member membership
		employee student patient contract vertrag dossier case_number username user_name login password pin version imei vin
		hausnummer house_number apartment room zimmer key token hash`
	emailWords = `email e_mail mail mailadresse emailadresse courriel correo correo_electronico correio pochta`
	ipWords    = `ip ip_address ip_adresse ipaddress user_ip`
	nameWords  = `full_name your_name first_name last_name surname forename firstname lastname fullname
		vorname nachname vor_und_nachname familienname prenom nom apellido apellidos cognome voornaam achternaam
		imie nazwisko imia familiia fornamn efternamn fornavn etternavn username user_name login_username`
)

// identifier returns the word that says that a field's digits identify something
// rather than count it, "" for none. A "number of" things is a count.
func identifier(text, itemType label) string {
	counted := label(strings.NewReplacer("_number_of_", "_", "_numbers_of_", "_", "_no_of_", "_", "_nr_of_", "_").Replace(string(text)))
	for _, list := range []string{phoneWords, postalWords, identityWords, codeWords} {
		if word := counted.has(list); word != "" {
			return word
		}
	}
	if strings.Contains(string(counted), "nummer_") { // Germanic languages join such words
		return "nummer"
	}
	return itemType.has("phone tel telephone mobile fax zip zipcode postal postcode id iban code ssn barcode")
}

// personalData says what personal data a field holds, by the field's id, label or item type,
// "" for none.
func personalData(from schemas.Source, text, itemType label) string {
	for _, kind := range []struct{ what, meta, words, types string }{
		{"an e-mail address", "login_email", emailWords, "email e_mail"},
		{"an IP address", "user_ip", ipWords, "ip"},
		{"a phone number", "", phoneWords, "phone tel telephone mobile fax"},
		{"a person's name", "login_username", nameWords, "name signature"},
	} {
		switch {
		case from.Kind == schemas.FromMeta && from.ID == kind.meta:
			return kind.what + ", because of its id"
		case from.Kind == schemas.FromMeta:
		case text.has(kind.words) != "":
			return kind.what + ", because of its label"
		case itemType.has(kind.types) != "":
			return kind.what + ", because of its item type"
		}
	}
	return ""
}

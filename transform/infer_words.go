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

// has returns the first of the phrases that the label has, "" for none.
func (l label) has(phrases string) string {
	for phrase := range strings.FieldsSeq(phrases) {
		if strings.Contains(string(l), "_"+phrase+"_") {
			return phrase
		}
	}
	return ""
}

// Words of labels, transliterated as schemas.Snake does it. A phrase has "_"
// between its words. Only whole words match: "paid" does not contain "id".
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
	// codeWords also suggest numbers that identify something.
	codeWords = `number numbers nummer num nr no numero numeros numer nomer nomor hao hao_ma bango beonho raqm mispar
		code codes kod kode codigo codice reference ref referenz referencia reference_number riferimento order_no order bestellung
		commande pedido ordine invoice rechnung facture factura fattura ticket tracking barcode ean gtin isbn issn asin sku serial
		seriennummer matricule matrikel matrikelnummer kundennummer mitgliedsnummer personalnummer customer member membership
		employee student patient contract vertrag dossier case_number username user_name login password pin version imei vin
		hausnummer house_number apartment room zimmer key token hash`
	emailWords = `email e_mail mail mailadresse emailadresse courriel correo correo_electronico correio elektronicheskaia_pochta
		pochta el_pochta dian_zi_you_jian you_xiang meru denshi_meru imeil email_address mejl posta_elettronica eposta e_posta e_post epost sahkoposti`
	ipWords   = `ip ip_address ip_adresse ipaddress user_ip ipv4 ipv6`
	nameWords = `name names surname forename firstname lastname fullname vorname nachname familienname nachnamen rufname
		nom prenom nombre nombres apellido apellidos nome cognome sobrenome naam voornaam achternaam imie nazwisko imia familiia
		otchestvo fio namn fornamn efternamn navn fornavn etternavn nimi etunimi sukunimi onoma eponymo xing_ming ming_zi
		shi_ming ism laqab shem shem_male ad soyad isim namae seimei ireum seongmyeong nama username user_name login login_username`
	// notPeople are words that show that a name is not that of a person.
	notPeople = `company firm firma organisation organization organisme societe entreprise empresa azienda ditta business
		product produkt produit producto file datei fichier event veranstaltung evento course kurs project projekt projet proyecto
		form formular brand marke domain host team school schule ecole escuela hotel device browser street strasse pet dog cat
		city ort ville ciudad country land pays pais de`
	addressWords = `address adresse anschrift strasse street street_address rue direccion direccion_postal calle indirizzo
		via endereco rua adres straat ulica adresa adress adresse_postale domicile wohnort hausnummer house_number ulitsa
		di_zhi zhu_zhi juso jusho kotoba_address enwan ktovet dieuthynse`
	birthWords = `birth birthday birthdate date_of_birth dob geburtsdatum geburtstag geboren born born_on naissance
		date_de_naissance ne_le nacimiento fecha_de_nacimiento nascita data_di_nascita nascimento geboortedatum data_urodzenia
		data_rozhdeniia rozhdeniia fodelsedatum fodselsdato chu_sheng chu_sheng_ri_qi sheng_ri seinengappi saengil tarikh_almilad`
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
	for word := range strings.SplitSeq(strings.Trim(string(counted), "_"), "_") {
		if strings.HasSuffix(word, "nummer") { // Germanic languages write such words as one
			return "nummer"
		}
	}
	return itemType.has("phone tel telephone mobile fax zip zipcode postal postcode id iban code ssn barcode")
}

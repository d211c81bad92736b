extension LoadSeed {
  /// The names of synthetic users and their events.
  enum Names {
    static func pick(_ random: inout Random) -> (display: String, ascii: String) {
      let people = people.randomElement(using: &random) ?? people[0]
      let given = people.given.randomElement(using: &random) ?? people.given[0]
      let family = people.family.randomElement(using: &random) ?? ""
      return (people.familyFirst ? "\(family) \(given.0)" : "\(given.0) \(family)", given.1)
    }

    /// Given names with a spelling for usernames, and family names.
    private static let people: [(given: [(String, String)], family: [String], familyFirst: Bool)] = [
      (
        [("Ana", "ana"), ("Inês", "ines"), ("João", "joao"), ("Rui", "rui"), ("Beatriz", "beatriz")],
        ["Carvalho", "Duarte", "Gonçalves", "Araújo"], false
      ),
      (
        [("Ben", "ben"), ("Grace", "grace"), ("Oluwaseun", "seun"), ("Niamh", "niamh"), ("Zoë", "zoe")],
        ["Okafor", "O’Brien", "Smith", "Walker-Jones"], false
      ),
      (
        [("Jürgen", "juergen"), ("Käthe", "kaethe"), ("Mika", "mika"), ("Søren", "soeren"), ("Åsa", "asa")],
        ["Müller", "Lindqvist", "Østergaard", "Weiß"], false
      ),
      (
        [("Горан", "goran"), ("Ольга", "olga"), ("Надія", "nadiia"), ("Дмитрий", "dmitri")],
        ["Илић", "Кузнецова", "Шевченко", "Петров"], false
      ),
      (
        [("Ελένη", "eleni"), ("Γιώργος", "giorgos"), ("Νίκος", "nikos")], ["Παπαδόπουλος", "Γεωργίου", "Νικολάου"],
        false
      ),
      ([("花", "hana"), ("翔太", "shota"), ("さくら", "sakura")], ["佐藤", "鈴木", "高橋"], true),
      ([("민준", "minjun"), ("서연", "seoyeon"), ("지우", "jiwoo")], ["김", "이", "박"], true),
      ([("伟", "wei"), ("芳", "fang"), ("小龙", "xiaolong")], ["王", "李", "欧阳"], true),
      ([("فاطمة", "fatima"), ("أحمد", "ahmad"), ("ليلى", "layla")], ["الإدريسي", "حسن", "المصري"], false),
      ([("देव", "dev"), ("प्रिया", "priya"), ("अनन्या", "ananya")], ["पटेल", "शर्मा", "गुप्ता"], false),
      ([("Emre", "emre"), ("Işıl", "isil"), ("Çağla", "cagla")], ["Yılmaz", "Şahin", "Öztürk"], false),
      ([("נועה", "noa"), ("דוד", "david")], ["כהן", "לוי"], false),
    ]

    static let bios = [
      "Always up for a walk.", "Coffee first.", "写真と喫茶店。", "Liest zu viel.", "🎸 🧗 🍜", "На связи после шести.",
    ]
    static let plans = [
      "Pasta night", "Board games", "Trail run", "Film & pizza", "Geburtstag!", "Café da manhã", "飲み会",
      "Picnic by the lake",
      "Книжный клуб", "Climbing", "Five-a-side", "Karaoke", "Flohmarkt", "Concert", "Study group",
    ]
    static let notes = [
      "Bring snacks.", "Meet at the entrance, the \"small\" one.", "Wir warten 10 Minuten.", "Kids welcome 🎈",
      "BYO everything; we have a grill.\nAnd a dog.", "遅れても大丈夫です。",
    ]
    static let places = [
      "Ana's kitchen", "Café Spielwiese", "Tempelhofer Feld", "代々木公園", "Парк Горького", "The Old Quarry", "Πλάκα",
    ]
    static let zones = [
      "Europe/Lisbon", "Europe/Berlin", "Europe/London", "America/New_York", "Asia/Tokyo", "Asia/Kolkata", "UTC",
    ]
  }
}

import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Names that must be unique are folded in ASCII only, so that the locale of the database decides nothing.
@Suite struct FoldingTests {
  /// The parts of a statement that fold letters.
  private func foldings(in text: String) -> [String] {
    text.matches(of: /\b(?:lower|upper|initcap)\s*\(|\bcitext\b|\bILIKE\b|~\*/.ignoresCase())
      .map { String($0.output) }
  }

  private func sources(_ folder: String, _ suffix: String) throws -> [(name: String, text: String)] {
    let url = Program.checkout.appending(path: folder)
    let names = FileManager.default.enumerator(atPath: url.path)?.compactMap { $0 as? String } ?? []
    return try names.filter { $0.hasSuffix(suffix) }.sorted().map {
      ($0, try String(contentsOf: url.appending(path: $0), encoding: .utf8))
    }
  }

  @Test func `no statement folds by the locale of the database`() throws {
    let migrations = try sources("Migrations", ".sql")
    #expect(migrations.count > 10)
    for (name, text) in migrations {
      let code = text.split(separator: "\n").filter { !$0.hasPrefix("--") }.joined(separator: "\n")
      // In `folded`, which names a collation.
      #expect(foldings(in: code).count == (name.hasPrefix("0001") ? 1 : 0), "\(name)")
    }
    let swift = try sources("Sources/App", ".swift") + sources("Sources/CLI", ".swift")
    #expect(swift.count > 100)
    for (name, text) in swift {
      let code = text.split(separator: "\n").filter { !$0.drop(while: { $0 == " " }).hasPrefix("//") }
      #expect(foldings(in: code.joined(separator: "\n")) == [], "\(name)")
    }
  }

  @Test func `no index, constraint, column, view or function of the schema folds by the locale of the database`()
    async throws
  {
    try await TestApp.run { app in
      let definitions = try await app.database.rows(
        """
        SELECT 'index ' || indexname AS name, indexdef AS text FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL
        SELECT 'constraint ' || conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace
        UNION ALL
        SELECT 'column ' || adrelid::regclass::text || '.' || adnum, pg_get_expr(adbin, adrelid) FROM pg_attrdef
        UNION ALL
        SELECT 'view ' || viewname, definition FROM pg_views WHERE schemaname = 'public'
        UNION ALL
        SELECT 'trigger ' || tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL
        SELECT 'function ' || proname, pg_get_functiondef(oid) FROM pg_proc AS p
        WHERE pronamespace = 'public'::regnamespace AND prokind = 'f'
          AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.objid = p.oid AND d.deptype = 'e')
        """
      ).map { row -> (name: String, text: String) in (try row["name"], try row["text"]) }
      #expect(definitions.count > 50)
      #expect(definitions.contains { $0.name == "function folded" && $0.text.contains("COLLATE folding") })
      for (name, text) in definitions where name != "function folded" {
        #expect(foldings(in: text) == [], "\(name): \(text)")
      }
      let keys = try await app.database.rows(
        """
        SELECT attrelid::regclass || '.' || attname || ' ' || collname AS key
        FROM pg_attribute AS a JOIN pg_collation AS c ON c.oid = a.attcollation
        WHERE attname IN ('username_key', 'email_key') AND attrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r')
        ORDER BY 1
        """
      ).map { row -> String in try row["key"] }
      #expect(keys == ["mail_tokens.email_key C", "users.email_key C", "users.username_key C", "visitors.email_key C"])
    }
  }

  @Test func `a search finds Greek names in capitals and in small letters, also by their beginnings`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      _ = try await app.signUp("nikos", displayName: "Νίκος Παπαδόπουλος")
      _ = try await app.signUp("sis", displayName: "Σισμανίδης")
      for query in ["ΠΑΠΑΔΟΠΟΥΛΟΣ", "Παπαδόπουλος", "παπαδοπουλοσ", "ΠΑΠΑΔΌΠΟΥΛΟΣ ΝΊΚΟΣ"] {
        #expect(try await ana.search(query) == ["nikos"], "\(query)")
      }
      for query in ["ΣΙΣ", "σις", "σισ", "ΣΙΣΜΑΝΙΔΗΣ"] {
        #expect(try await ana.search(query) == ["sis"], "\(query)")
      }
      // ICU and PostgreSQL's own rules agree on all letters of these.
      let folded: String? = try await app.database.value("SELECT folded('ΣΊΣΥΦΟΣ, Ὀδυσσεύς')")
      #expect(folded == "σισυφοσ, οδυσσευσ")
    }
  }

  @Test(arguments: [
    ("ICU_LOCALE 'tr-TR'", ["ильин", "ИЛЬИН"]), ("ICU_LOCALE 'lt-LT'", ["ильин", "ИЛЬИН"]),
    // There, PostgreSQL finds words of ASCII letters only.
    ("LOCALE 'C'", []),
  ])
  func `in a database of any locale, usernames and mailboxes are one, and the search finds all letters`(
    _ locale: String, more: [String]
  ) async throws {
    let prepare = { @Sendable (url: String) in
      var options = locale
      if locale.hasPrefix("ICU") {
        let hasICU = try await ScriptConnection.run(url) { connection -> Bool in
          try connection.rows("SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'und-x-icu')")[0][0]
        }
        options = "LOCALE 'C.UTF-8' LOCALE_PROVIDER " + (hasICU ? "icu \(locale)" : "builtin BUILTIN_LOCALE 'C.UTF-8'")
      }
      try await TestCluster.recreate(url, "TEMPLATE template0 ENCODING 'UTF8' \(options)")
      try await Resources.migrator(url: url, role: TestCluster.programRole).up()
    }
    try await TestApp.run(["MUSTER_THROTTLING": "off"], prepare: prepare) { app in
      func register(_ username: String, _ email: String, _ name: String) async throws -> APIResponse {
        try await app.send(
          "POST", "auth/register",
          body: #"{"username": "\#(username)", "email": "\#(email)", "displayName": "\#(name)"}"#)
      }
      let ana = try await app.signUp("ana")
      #expect(try await register("INFOdesk", "INFO@Desk.example", "Иван ИЛЬИН").status == 201)
      #expect(try await register("infodesk", "other@desk.example", "x").problem == "username-taken")
      #expect(try await register("other", "info@desk.EXAMPLE", "x").problem == "email-taken")
      #expect(try await app.askForCode("info@desk.example").status == 202)
      #expect(try await app.takeMails().map(\.type).contains("mail-sign-in-code"))
      for query in ["info", "INFO", "infodesk", "\u{130}nfo", "\u{131}nfo"] + more {
        #expect(try await ana.search(query) == ["INFOdesk"], "\(query)")
      }
      let renamed = try await ana.send("PATCH", "users/me", #"{"username": "InfoDesk"}"#)
      #expect(renamed.problem == "username-taken")
      try await app.database.execute(
        "UPDATE users SET password_hash = (SELECT password_hash FROM users WHERE username = 'ana')")
      for login in ["infodesk", "INFODESK", "INFO@DESK.EXAMPLE", "info@desk.example"] {
        #expect(try await app.logIn(login, ana.password).status == 200, "\(login)")
      }
    }
  }
}

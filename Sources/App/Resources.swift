import Postgres

/// Files that are embedded in the program, so that an installed binary needs no checkout.
public enum Resources {
  public static let migrations = Embedded.migrations.map { Migration(fileName: $0.key, text: $0.value) }

  static var openAPI: String { Embedded.openapi["openapi.yaml"] ?? "" }
  static var docsTemplate: String { Embedded.docs["docs.mustache"] ?? "" }
  static var style: String { Embedded.style["style.css"] ?? "" }
  static var shareTemplate: String { Embedded.share["share.mustache"] ?? "" }
  static var shareStyle: String { Embedded.sharestyle["share-style.css"] ?? "" }
  static var commonPasswords: String { Embedded.commonpasswords["common-passwords.txt"] ?? "" }
  static var seeds: [String: String] { Embedded.seeds }
  /// In base64, by file name.
  static var seedPictures: [String: String] { Embedded.pictures }
}

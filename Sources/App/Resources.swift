import Postgres

/// Files that are embedded in the program, so that an installed binary needs no checkout.
public enum Resources {
  public static let migrations = Embedded.migrations.map { Migration(fileName: $0.key, text: $0.value) }

  /// Migrates a database, and refuses one that would lose or misread text.
  ///
  /// - Parameter role: the role of `serve` and `worker`, which gets the rights that they need.
  public static func migrator(url: String, role: String? = nil) -> Migrator {
    var migrator = Migrator(url: url, migrations: migrations)
    migrator.programRole = role
    migrator.programs = "muster "
    migrator.requiredSettings = [
      .init(
        "server_encoding", "UTF8", remedy: "create another with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0"),
      .init(
        "standard_conforming_strings", "on",
        remedy: "set it with ALTER DATABASE ... SET standard_conforming_strings = on"),
    ]
    return migrator
  }

  static var openAPI: String { Embedded.openapi["openapi.yaml"] ?? "" }
  /// The same as JSON.
  static var openAPIJSON: String { Embedded.openAPIJSON }
  /// The page at `/docs`, on which `https://muster.invalid` stands for the service's URL.
  static var docsPage: String { Embedded.docsPage }
  static var style: String { Embedded.style["style.css"] ?? "" }
  static var shareTemplate: String { Embedded.share["share.mustache"] ?? "" }
  static var shareStyle: String { Embedded.sharestyle["share-style.css"] ?? "" }
  static var commonPasswords: String { Embedded.commonpasswords["common-passwords.txt"] ?? "" }
  static var seeds: [String: String] { Embedded.seeds }
  /// In base64, by file name.
  static var seedPictures: [String: String] { Embedded.pictures }
}

/// The release of Muster that this program is.
public enum Release {
  /// Tests compare the version in the OpenAPI document and that of `musterctl` with it.
  public static let version = "0.1.0"
}

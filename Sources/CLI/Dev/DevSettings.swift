import App
import EmbeddedPostgres
import Foundation

/// Settings that `muster dev` keeps with its data from run to run.
struct DevSettings: Codable {
  struct Keys: Codable {
    var access = SigningKeys.generate()
    var refresh = SigningKeys.generate()
    var address = SigningKeys.generate()
  }

  /// Nil while no other machine could reach the service. Once made, they are used by every run: with other keys, all
  /// phones would have to log in again.
  var keys: Keys?
  /// The URL that `pictureUrl` began with in the last run.
  var publicURL: String?

  static func read(from cluster: EmbeddedPostgres) throws -> DevSettings {
    guard let text = cluster.settings else { return DevSettings() }
    do {
      return try JSONDecoder().decode(DevSettings.self, from: Data(text.utf8))
    } catch {
      throw Failure("the settings in \(cluster.folder) are damaged: start over with `muster dev --reset`")
    }
  }

  func save(to cluster: EmbeddedPostgres) throws {
    try cluster.keep(settings: String(decoding: try JSONEncoder().encode(self), as: UTF8.self))
  }

  /// The keys as environment variables.
  var variables: [String: String] {
    guard let keys else { return [:] }
    return [
      "MUSTER_ACCESS_TOKEN_KEYS": keys.access, "MUSTER_REFRESH_TOKEN_KEYS": keys.refresh,
      "MUSTER_ADDRESS_KEYS": keys.address,
    ]
  }
}

import Crypto
import Foundation

extension DemoSeed {
  /// Gives a new user their picture, as if they had uploaded it. The sizes were made before, so that planting needs no
  /// other program.
  func plantPicture(of person: PersonSeed, in change: Change) async throws {
    let clean = try picture(of: person)
    let picture = Picture(clean, small: try file("-192.jpg", of: person), large: try file("-768.jpg", of: person))
    try await picture.put(of: person.user, key: Self.key(of: clean), in: change)
  }

  func picture(of person: PersonSeed) throws -> CleanPicture {
    guard let clean = CleanPicture(of: Array(try file(".png", of: person))) else { throw AppError.notAPicture }
    return clean
  }

  /// The URL of a demo picture is the same on every machine. Anyone can see the picture in the source anyway.
  static func key(of picture: CleanPicture) -> String {
    Data(SHA256.hash(data: picture.bytes).prefix(Picture.keyLength)).base64URL
  }

  private func file(_ ending: String, of person: PersonSeed) throws -> Data {
    let name = person.username + ending
    guard let text = Resources.seedPictures[name], let bytes = Data(base64Encoded: text) else {
      throw AppError.invalidSeed("The picture \(name) is missing.")
    }
    return bytes
  }
}

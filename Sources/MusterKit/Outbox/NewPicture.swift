import Foundation

/// A picture that the user has chosen for the profile. Until it is sent, its bytes are a file of the outbox, which the
/// profile shows.
public struct NewPicture: Sendable {
  /// In bytes: 2 MiB. The service takes no larger file.
  public static let maximumLength = 2 << 20

  /// Such as `image/jpeg`.
  public let contentType: String
  /// Names the file.
  let id: UUID
  /// Nil until the write is performed.
  let file: URL?
  /// Nil once the file has them.
  private let data: Data?

  /// - Parameters:
  ///   - data: a JPEG, PNG, WebP or HEIC of at most 2 MiB and 4096 pixels a side.
  ///   - contentType: such as `image/jpeg`.
  public init(_ data: Data, contentType: String) {
    self.init(data, contentType: contentType, id: UUID())
  }

  init(_ data: Data, contentType: String, id: UUID) {
    (self.id, file, self.data, self.contentType) = (id, nil, data, contentType)
  }

  private init(_ id: UUID, in file: URL, contentType: String) {
    (self.id, self.file, data, self.contentType) = (id, file, nil, contentType)
  }

  /// - Throws: ``StoreError/damaged`` if the file is gone; ``StoreError/disk(_:)`` if it cannot be read now.
  func bytes() throws -> Data {
    if let data { return data }
    guard let file, access(file.path, F_OK) == 0 else { throw StoreError.damaged }
    do {
      return try Data(contentsOf: file)
    } catch {
      throw StoreError.disk("\(file.path): \(error.localizedDescription)")
    }
  }
}

// Two are the same if they have the same file: the bytes never change.
extension NewPicture: Hashable {
  public static func == (one: NewPicture, other: NewPicture) -> Bool { one.id == other.id }

  public func hash(into hasher: inout Hasher) { hasher.combine(id) }
}

// In the file of the write, the picture is a name.
extension NewPicture: Codable {
  private enum CodingKeys: String, CodingKey { case id = "file", contentType }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    id = try container.decode(UUID.self, forKey: .id)
    contentType = try container.decode(String.self, forKey: .contentType)
    data = nil
    let folder = OutboxFiles.Folder.key.flatMap { decoder.userInfo[$0] as? OutboxFiles.Folder }
    file = folder?.url.appendingPathComponent(OutboxFiles.pictureName(of: id))
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(id, forKey: .id)
    try container.encode(contentType, forKey: .contentType)
  }
}

extension Write {
  var picture: NewPicture? { if case .setPicture(let picture) = self { picture } else { nil } }
}

/// The files of pictures, next to those of the writes.
extension OutboxFiles {
  /// The folder of the outbox, for decoders.
  struct Folder: Sendable {
    static let key = CodingUserInfoKey(rawValue: "muster-outbox")

    let url: URL
  }

  private static let picturePrefix = "picture-"
  /// Seconds. A picture may be there before the file of its write.
  private static let orphanAge: TimeInterval = 3600

  static func pictureName(of id: UUID) -> String { picturePrefix + id.wire }

  /// Writes a picture to a file of its own, unless it is in one already.
  ///
  /// - Throws: ``StoreError/pictureTooLarge``, ``StoreError/disk(_:)``
  func keep(_ picture: NewPicture) async throws -> NewPicture {
    guard picture.file == nil else { return picture }
    let bytes = try picture.bytes()
    guard bytes.count <= NewPicture.maximumLength else { throw StoreError.pictureTooLarge }
    // The app may perform the same write twice.
    let id = UUID()
    let path = "\(Self.subfolder)/\(Self.pictureName(of: id))"
    try folder.write(bytes, to: path)
    return picture.kept(as: id, in: folder.file(path))
  }

  func erase(_ picture: NewPicture) async throws { try folder.remove(path(of: picture)) }

  /// Erases pictures whose writes are gone: the app ended between two steps.
  func eraseOrphans(_ contents: Contents) {
    guard contents.unreadable.isEmpty, let names = try? folder.names(in: Self.subfolder) else { return }
    let writes = contents.records.values.map(\.write) + contents.damaged.compactMap(\.write)
    let known = Set(writes.compactMap(\.picture).map { Self.pictureName(of: $0.id) })
    for name in names where name.hasPrefix(Self.picturePrefix) && !known.contains(name) {
      let path = "\(Self.subfolder)/\(name)"
      let age = folder.age(of: path)
      if age > Self.orphanAge, age < .infinity { try? folder.remove(path) }
    }
  }

  private func path(of picture: NewPicture) -> String { "\(Self.subfolder)/\(Self.pictureName(of: picture.id))" }
}

extension NewPicture {
  fileprivate func kept(as id: UUID, in file: URL) -> NewPicture {
    NewPicture(id, in: file, contentType: contentType)
  }
}

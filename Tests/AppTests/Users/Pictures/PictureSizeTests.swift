import Foundation
import Postgres
import Testing

@testable import App

/// The sizes of a picture, as a phone gets them.
@Suite struct PictureSizeTests {
  private static let files: [(what: String, bytes: [UInt8], small: [Int], large: [Int], full: [Int])] = [
    ("a JPEG", Sample.jpeg(width: 1600, height: 1200), [192, 144], [768, 576], [1600, 1200]),
    ("a tall JPEG", Sample.jpeg(width: 1200, height: 1600), [144, 192], [576, 768], [1200, 1600]),
    ("a JPEG of the largest size", Sample.jpeg(width: 4096, height: 4096), [192, 192], [768, 768], [2048, 2048]),
    ("a line", Sample.jpeg(width: 4096), [192, 1], [768, 1], [2048, 1]),
    ("a PNG", Sample.png(width: 800, height: 400), [192, 96], [768, 384], [800, 400]),
    ("a picture between the sizes", Sample.png(width: 384, height: 200), [192, 100], [384, 200], [384, 200]),
    ("a small PNG", Sample.png(), [1, 1], [1, 1], [1, 1]),
    ("a WebP", Sample.ascii(Sample.webpText), [1, 1], [1, 1], [1, 1]),
    ("a HEIC", PictureDecoder.sample, [64, 48], [64, 48], [64, 48]),
  ]

  @Test func `each picture has three sizes, which are JPEG and never larger than the picture`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (what, bytes, small, large, full) in Self.files {
        let url = try await ana.show(bytes)
        for (query, expected) in [("?size=192", small), ("?size=768", large), ("?size=2048", full), ("", full)] {
          let response = try await app.fetch(url + query)
          #expect(response.status == 200 && response.header("Content-Type") == "image/jpeg", "\(what), \(query)")
          #expect(try Sample.sides(of: response.bytes) == expected, "\(what), \(query)")
        }
      }
      // The sizes are in the row of the picture, and go with it.
      let stored: Int? = try await app.value("SELECT count(*) FROM pictures")
      #expect(stored == 1)
      let columns: [String] = try await app.database.rows(
        "SELECT attname::text AS name FROM pg_attribute WHERE attrelid = 'pictures'::regclass AND atttypid = 'bytea'::regtype"
      ).map { try $0["name"] }
      #expect(Set(columns) == ["digest", "jpeg_192", "jpeg_768", "jpeg_2048"])
      let export = try await ana.get("users/me/export")
      #expect(export["pictures"][0].keys == ["key", "createdAt", "jpeg2048"])
    }
  }

  @Test func `a size is cached like the picture, under a tag of its own`() async throws {
    let log = StatementLog()
    try await TestApp.run(logger: log.logger) { app in
      let ana = try await app.signUp("ana")
      let url = try await ana.show(try Noise.png(640))
      let whole = try await app.fetch(url)
      // The same picture under two URLs has one tag.
      let named = try await app.fetch("\(url)?size=2048")
      #expect(named.bytes == whole.bytes && named.header("ETag") == whole.header("ETag"))
      var tags = [try #require(whole.header("ETag"))]
      for size in ["192", "768"] {
        let sized = "\(url)?size=\(size)"
        let response = try await app.fetch(sized)
        for name in ["Cache-Control", "X-Content-Type-Options", "Content-Security-Policy"] {
          #expect(response.header(name) == whole.header(name), "\(name)")
        }
        let tag = try #require(response.header("ETag"))
        let statements = try await log.statements {
          let head = try await app.fetch(sized, method: "HEAD")
          #expect(head.status == 200 && head.bytes.isEmpty)
          #expect(head.header("Content-Length") == "\(response.bytes.count)" && head.header("ETag") == tag)
          let again = try await app.fetch(sized, headers: [("If-None-Match", tag)])
          #expect(again.status == 304 && again.header("Cache-Control") == whole.header("Cache-Control"))
        }
        #expect(statements.count == 2 && !statements.contains { $0.contains("substring") }, "\(statements)")
        for other in tags {
          let response = try await app.fetch(sized, headers: [("If-None-Match", other)])
          #expect(response.status == 200)
        }
        tags.append(tag)
      }
      #expect(Set(tags).count == 3)
    }
  }

  @Test func `a wrong size is refused, and other parameters are ignored`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let path = try await ana.show(Sample.png()).replacing(app.url, with: "")
      for query in [
        "size=", "size", "size=0", "size=193", "size=0192", "size=192x192", "size=4096", "size=%ff",
        "size=192&size=768",
      ] {
        let response = try await app.sendRaw("GET", "\(path)?\(query)")
        #expect(response.status == 422 && response.problem == "invalid-fields", "\(query)")
        #expect(response.badFields == ["size"] && response.header("Cache-Control") == nil, "\(query)")
      }
      for query in ["", "v=2", "Size=5", "v=1&v=2", "size=192&utm=x"] {
        let response = try await app.fetch("\(app.url)\(path)?\(query)")
        #expect(response.status == 200, "\(query)")
      }
    }
  }

  @Test func `a picture whose pixels are broken is refused`() async throws {
    var broken = Sample.png()
    let pixels = try #require(broken.firstRange(of: Sample.ascii("IDAT"))).upperBound
    broken[pixels] ^= 0xff
    let short = Sample.png(8, 8, rows: [UInt8](repeating: 0, count: 33))
    let files = [
      ("a HEIC without pixels", Sample.heic()), ("a PNG with wrong pixels", broken), ("a PNG with too few rows", short),
      ("a WebP without pixels", Sample.lossyWebP),
    ]
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      for (what, bytes) in files {
        #expect(PictureFormat(of: bytes) != nil, "\(what) looks like a picture")
        let response = try await ana.putPicture(bytes, expecting: 415)
        #expect(response.problem == "unsupported-media-type", "\(what)")
      }
      let stored: Int? = try await app.value("SELECT count(*) FROM pictures")
      #expect(stored == 0)
    }
  }

  @Test func `without the program, uploads get 503, and the log says why`() async throws {
    let log = CapturedLog()
    try await TestApp.run(logger: log.logger(), decoderPath: "/nonexistent:/tmp/nonexistent") { app in
      let ana = try await app.signUp("ana")
      let response = try await ana.send("PUT", "users/me/picture", Sample.webpText)
      #expect(response.status == 503 && response.problem == "pictures-unavailable")
      #expect(response.header("Retry-After") == "60")
      let me = try await ana.get("users/me")
      #expect(me["pictureUrl"] == .null)
      let line = log.lines.first { $0.message == "pictures cannot be decoded" }
      #expect(line.map { "\($0)".contains("no vipsheader in /nonexistent:/tmp/nonexistent") } == true, "\(log.text)")
      await app.dependencies.checkPictures()
      #expect(log.text.contains("some pictures cannot be uploaded"))
    }
  }

  @Test func `where everything is installed, the log says only how the decoder is contained`() async throws {
    let log = CapturedLog()
    try await TestApp.run(logger: log.logger()) { app in
      await app.dependencies.checkPictures()
      let line = try #require(log.lines.first { $0.message == "pictures are decoded in a sandbox" }, "\(log.text)")
      let missing = Containment.measures.count { $0.by == nil }
      #expect(log.lines.count { $0.message.contains("incomplete") } == missing, "\(log.text)")
      #expect(log.lines.count { $0.message.contains("picture") } == 1 + missing, "\(line)")
    }
  }
}

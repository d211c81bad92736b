import Foundation
import Logging
import TestSupport
import Testing

@testable import App

/// The program that resizes pictures: what it makes of them, and what follows from its failures.
@Suite struct PictureResizerTests {
  private func resizer(_ program: String = "vipsthumbnail", patience: Duration = .seconds(120)) -> PictureResizer {
    PictureResizer(program: program, patience: patience, logger: .quiet)
  }

  /// Runs `body` with a shell script in place of the program.
  private func with(_ script: String, _ body: (_ program: String) async throws -> Void) async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: "muster-resizer-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: file) }
    // Another process writes it. A process that is started while this one writes it would hold it open for a moment,
    // and Linux runs no file that is open for writing.
    let writer = try await Program(
      "/bin/sh", ["-c", #"printf '#!/bin/sh\n%s\n' "$1" >"$0" && chmod 755 "$0""#, file, script])
    #expect(try await writer.exitStatus() == 0)
    try await body(file)
  }

  /// A PNG of one color, with these chunks.
  private func png(_ pixel: [UInt8], width: Int = 8, height: Int = 8, _ metadata: [UInt8] = []) -> [UInt8] {
    let row: [UInt8] = [0] + Array(repeatElement(pixel, count: width).joined())
    return Sample.png(
      UInt32(width), UInt32(height), metadata, rows: Array(repeatElement(row, count: height).joined()))
  }

  @Test func `a turned picture is upright`() async throws {
    // The first row is red; turned to the right, it is the last column.
    let (red, blue): ([UInt8], [UInt8]) = ([255, 0, 0, 255], [0, 0, 255, 255])
    func rows(_ width: Int, _ height: Int, _ isRed: (_ column: Int, _ row: Int) -> Bool) -> [UInt8] {
      (0..<height).flatMap { row -> [UInt8] in
        [0] + (0..<width).flatMap { column -> [UInt8] in isRed(column, row) ? red : blue }
      }
    }
    let exif = Sample.chunk("eXIf", Sample.tiff(orientation: 6))
    let turned = try await resizer().resize(Sample.png(24, 16, exif, rows: rows(24, 16) { _, row in row < 8 }))
    let upright = try await resizer().resize(Sample.png(16, 24, rows: rows(16, 24) { column, _ in column >= 8 }))
    #expect(turned.small == upright.small)
    #expect(turned.large == upright.large)
    let exifOfJPEG = Sample.segment(0xe1, Sample.join(Sample.ascii("Exif\0\0"), Sample.tiff(orientation: 6)))
    let photo = try await resizer().resize(Sample.jpeg(width: 64, height: 32, metadata: exifOfJPEG))
    let size = try #require(JPEGFile.cleaned(PictureBytes(photo.large)))
    #expect(size.width == 32 && size.height == 64)
    for bytes in [photo.small, photo.large, turned.small] {
      #expect(bytes.firstRange(of: Sample.ascii("Exif")) == nil && bytes.firstRange(of: Sample.secret) == nil)
    }
  }

  @Test func `transparency becomes white`() async throws {
    let clear = try await resizer().resize(png([9, 8, 7, 0]))
    let white = try await resizer().resize(png([255, 255, 255, 255]))
    #expect(clear.small == white.small)
    #expect(clear.large == white.large)
  }

  @Test func `colors are converted to sRGB, and the profile is left out`() async throws {
    let profile = Sample.chunk("iCCP", Sample.ascii("x\0\0") + Sample.zlib(Self.profileWithRedAndGreenExchanged))
    let exchanged = try await resizer().resize(png([255, 0, 0, 255], profile))
    let green = try await resizer().resize(png([0, 255, 0, 255]))
    #expect(exchanged.large == green.large)
    let red = try await resizer().resize(png([255, 0, 0, 255]))
    #expect(exchanged.large != red.large)
  }

  /// An ICC profile with the primaries of sRGB, except that red is green and green is red.
  private static var profileWithRedAndGreenExchanged: [UInt8] {
    func fixed(_ numbers: [Double]) -> [UInt8] { numbers.flatMap { Sample.big(Int32(($0 * 65_536).rounded())) } }
    func color(_ numbers: Double...) -> [UInt8] { Sample.ascii("XYZ \0\0\0\0") + fixed(numbers) }
    let curve = Sample.ascii("curv\0\0\0\0") + Sample.big(UInt32(1)) + Sample.big(UInt16(2.2 * 256)) + [0, 0]
    let tags: [(name: String, content: [UInt8])] = [
      ("wtpt", color(0.9642, 1, 0.8249)), ("rXYZ", color(0.3851, 0.7169, 0.0971)),
      ("gXYZ", color(0.4361, 0.2225, 0.0139)), ("bXYZ", color(0.1431, 0.0606, 0.7141)),
      ("rTRC", curve), ("gTRC", curve), ("bTRC", curve),
    ]
    var (table, contents): ([UInt8], [UInt8]) = ([], [])
    let start = 128 + 4 + 12 * tags.count
    for (name, content) in tags {
      table += Sample.ascii(name) + Sample.big(UInt32(start + contents.count)) + Sample.big(UInt32(content.count))
      contents += content
    }
    var header = Sample.big(UInt32(start + contents.count)) + [0, 0, 0, 0, 2, 0x10, 0, 0]
    header += Sample.ascii("mntrRGB XYZ ") + [UInt8](repeating: 0, count: 12) + Sample.ascii("acsp")
    header += [UInt8](repeating: 0, count: 28) + fixed([0.9642, 1, 0.8249])
    header += [UInt8](repeating: 0, count: 128 - header.count)
    return header + Sample.big(UInt32(tags.count)) + table + contents
  }

  private static let failures: [(script: String, error: AppError)] = [
    ("exit 126", .picturesUnavailable), ("exit 127", .picturesUnavailable), ("kill -9 $$", .picturesUnavailable),
    // No JPEG: the program may not pass on what it got.
    ("echo hello", .picturesUnavailable), ("exec cat", .picturesUnavailable),
    ("exit 1", .notAPicture), ("kill -SEGV $$", .notAPicture), ("kill -XCPU $$", .notAPicture),
    ("exec cat /dev/zero", .notAPicture), ("exec cat /dev/zero >&2", .notAPicture),
  ]

  @Test func `a failure of the machine is not a failure of the picture`() async throws {
    // Larger than a pipe, so that the program ends before it has got all of it.
    let picture = Sample.png(length: 300_000)
    for (script, error) in Self.failures {
      try await with(script) { program in
        await #expect(throws: error, "\(script)") { _ = try await resizer(program).resize(picture) }
      }
    }
  }

  @Test func `a program that hangs is ended`() async throws {
    try await with("exec sleep 100000") { program in
      // Returns only when the program has ended.
      await #expect(throws: AppError.tooManyUploads) {
        _ = try await resizer(program, patience: .milliseconds(200)).resize(Sample.png())
      }
      let cancelled = Task { _ = try await resizer(program).resize(Sample.png()) }
      cancelled.cancel()
      await #expect(throws: CancellationError.self) { try await cancelled.value }
    }
  }

  #if os(Linux)
    @Test func `the program has limits, a low priority, and nothing of this process`() async throws {
      let script = """
        limits="$(ulimit -c) $(ulimit -f) $(ulimit -S -t) $(ulimit -H -t) $(ulimit -v) $(nice)"
        case $limits in "0 0 10 11 786432 1"?) ;; *) echo "limits: $limits" >&2; exit 127 ;; esac
        [ -z "${HOME-}${MUSTER_TEST_CLUSTER-}" ] || exit 127
        # Its own three files, and the list itself.
        [ "$(ls /proc/self/fd | wc -l)" -le 4 ] || exit 127
        exec vipsthumbnail "$@"
        """
      try await with(script) { program in
        let sizes = try await resizer(program).resize(Sample.png())
        #expect(!sizes.small.isEmpty)
      }
    }
  #endif
}

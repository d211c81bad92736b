import Postgres

/// A size in which every picture is available, named as in the query of its URL.
enum PictureSize: String, CaseIterable, Sendable {
  case small = "192"
  case large = "768"
  /// Also without a size in the URL.
  case full = "2048"

  /// The maximum number of pixels of the longer side.
  var side: Int {
    switch self {
    case .small: 192
    case .large: 768
    case .full: 2048
    }
  }

  /// In bytes. Noise of 768 by 768 pixels has 390 KB, and noise of 2048 by 2048 pixels 2.8 MB.
  var maximumLength: Int { self == .full ? 4 << 20 : 1 << 20 }

  /// The column with the bytes.
  var column: SQL {
    switch self {
    case .small: "jpeg_192"
    case .large: "jpeg_768"
    case .full: "jpeg_2048"
    }
  }
}

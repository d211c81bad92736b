import Foundation

/// The decoder's output for an uploaded picture: JPEGs in sRGB, upright, on white, without metadata.
struct DecodedPicture: Sendable {
  let small: Data
  let large: Data
  let full: Data
}

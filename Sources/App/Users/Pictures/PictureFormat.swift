import Postgres

/// The supported picture formats, with the media types that they are served as.
enum PictureFormat: String, SQLValue {
  case jpeg = "image/jpeg"
  case png = "image/png"
  case webp = "image/webp"
  case heic = "image/heic"
}

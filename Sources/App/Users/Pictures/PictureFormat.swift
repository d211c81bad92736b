import Postgres

/// The kinds of pictures that the service takes, each by the media type that it is served as.
enum PictureFormat: String, SQLValue {
  case jpeg = "image/jpeg"
  case png = "image/png"
  case webp = "image/webp"
  case heic = "image/heic"
}

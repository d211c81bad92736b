extension Int {
  /// At least two digits, such as `07`.
  var twoDigits: String { self < 10 ? "0\(self)" : "\(self)" }
}

/// An English sentence whose parts stay known, so that an app can write it in another language.
///
/// An interpolated string becomes an argument. An interpolated sentence adds its words and arguments.
struct Sentence: ExpressibleByStringInterpolation {
  private(set) var text: String
  /// The parts that are not English, in the order of the text.
  private(set) var args: [String] = []
  /// Distinguishes sentences of one type whose words differ. Stable, because apps have translations for it.
  private(set) var variant: String?

  init(stringLiteral text: String) {
    self.text = text
  }

  init(stringInterpolation: StringInterpolation) {
    self = stringInterpolation.sentence
  }

  init(_ sentence: Sentence, variant: String) {
    self = sentence
    self.variant = variant
  }

  /// The name of the sentence for translations.
  func key(ofType type: String) -> String { variant.map { "\(type).\($0)" } ?? type }

  struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var sentence: Sentence = ""

    init(literalCapacity: Int, interpolationCount: Int) {}

    mutating func appendLiteral(_ words: String) {
      sentence.text += words
    }

    mutating func appendInterpolation(_ arg: String) {
      sentence.text += arg
      sentence.args.append(arg)
    }

    mutating func appendInterpolation(_ part: Sentence) {
      sentence.text += part.text
      sentence.args += part.args
      sentence.variant = part.variant ?? sentence.variant
    }
  }
}

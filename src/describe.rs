//! The methods that describe a model, shared by the async and the blocking handles.

/// What every handle says about its model.
macro_rules! describe_model {
    ($handle:ty) => {
        impl $handle {
            /// Tokens that a text makes, special ones and the default prompt's included, before
            /// truncation: more than [`max_length`](Self::max_length) means that the model would
            /// see only a part.
            ///
            /// # Errors
            /// [`Error::Tokenize`](crate::Error::Tokenize) when the tokenizer cannot read it.
            pub fn count_tokens(&self, text: impl AsRef<str>) -> crate::Result<usize> {
                self.model.count_tokens(text.as_ref())
            }

            /// The tokens of texts behind a prompt, none left out, with or without the special tokens around them. Looking
            /// up their words reads the whole vocabulary once a call, so many texts belong into one.
            ///
            /// # Errors
            /// [`Error::Tokenize`](crate::Error::Tokenize) when the tokenizer cannot read a text, and
            /// [`Error::Config`](crate::Error::Config) for an unknown prompt name and a model that reads no texts.
            pub fn tokenize(
                &self,
                texts: &[impl AsRef<str>],
                prompt: &crate::Prompt,
                special_tokens: bool,
            ) -> crate::Result<Vec<Vec<crate::Token>>> {
                self.model.tokenize(texts, prompt, special_tokens)
            }

            /// The texts of token ids, with or without the tokens that the tokenizer calls special.
            ///
            /// # Errors
            /// [`Error::Tokenize`](crate::Error::Tokenize) for an id beyond the vocabulary and for a tokenizer whose decoder
            /// is not supported, and [`Error::Config`](crate::Error::Config) for a model that reads no texts.
            pub fn decode(
                &self,
                texts: &[impl AsRef<[u32]>],
                special_tokens: bool,
            ) -> crate::Result<Vec<String>> {
                self.model.decode(texts, special_tokens)
            }

            /// Tokens of a text that the model sees, special ones included.
            pub fn max_length(&self) -> usize {
                self.model.max_length
            }

            /// The model's name: the id, folder or name that it was loaded by.
            pub fn model_name(&self) -> &str {
                &self.model.name
            }

            /// The provider that really computes, read back from the runtime.
            pub fn provider(&self) -> &isovec_engine::engine::ProviderInfo {
                self.model.engines.current().provider()
            }

            /// The model as its engine sees it: inputs, outputs, operators, size.
            pub fn description(&self) -> &isovec_engine::description::ModelDescription {
                self.model.engines.current().description()
            }

            /// The capabilities of the engine with this model.
            pub fn capabilities(&self) -> &isovec_engine::engine::Capabilities {
                self.model.engines.current().capabilities()
            }

            /// Says which vectors can be compared with this model's.
            pub fn fingerprint(&self) -> &isovec_engine::fingerprint::Fingerprint {
                &self.model.fingerprint
            }

            /// Every knob: the requested value, the value in effect, and the reason.
            pub fn effective_config(&self) -> &crate::config::EffectiveConfig {
                self.model.effective()
            }

            /// The configuration that it was loaded under.
            pub fn config(&self) -> &crate::EmbeddingConfig {
                &self.model.config
            }

            /// Lets go of the vectors that `embedding_cache` keeps in memory, as before a measurement. Those on disk stay.
            pub fn forget_vectors(&self) {
                if let Some(cache) = &self.model.cache {
                    cache.forget();
                }
            }

            /// The statistics since the model was loaded: sessions, buffers, provider, tokens and padding, and the
            /// times of every stage.
            pub fn stats(&self) -> crate::stats::Stats {
                self.model.stats()
            }

            /// Records all work from now on, request by request, until the session is finished: tokenising, waiting,
            /// batches, runs and their operators. Running calls are not recorded.
            ///
            /// # Errors
            /// [`Error::AlreadyProfiled`](crate::Error::AlreadyProfiled) while another session
            /// records this model.
            pub fn profile(
                &self,
                options: crate::profile::ProfileOptions,
            ) -> crate::Result<crate::profile::ProfileSession> {
                let session = crate::profile::ProfileSession::start(options);
                self.profile_into(&session)?;
                Ok(session)
            }

            /// The same into a session that was started already, to have several models in one
            /// profile.
            ///
            /// # Errors
            /// As [`profile`](Self::profile).
            pub fn profile_into(
                &self,
                session: &crate::profile::ProfileSession,
            ) -> crate::Result<()> {
                let model = std::sync::Arc::clone(&self.model);
                Ok(session.attach(&self.model.profiler, model)?)
            }
        }
    };
}

/// What both handles of a model of vectors say besides.
macro_rules! describe_vectors {
    ($handle:ty) => {
        impl $handle {
            /// A set without vectors, for [`Embeddings::push`](crate::Embeddings::push): filled with a stream's
            /// vectors under these options, it equals the result of `embed_with`.
            ///
            /// # Errors
            /// [`Error::Config`](crate::Error::Config) when the model has no prompt of that name, or
            /// cannot give such vectors.
            pub fn empty_set(
                &self,
                options: &crate::EmbedOptions,
            ) -> crate::Result<crate::Embeddings> {
                self.model.empty_set(options)
            }

            /// Cuts a text into chunks that the model sees whole, with its default prompt: every
            /// character but white space is in one, or with an overlap in several. A text of white
            /// space has none, and one that fits is one chunk (unless it has more than
            /// 256 bytes for each token). Tokens are counted by the model's own tokenizer, in time
            /// that grows with the text's length, on the calling thread.
            ///
            /// # Errors
            /// [`Error::Config`](crate::Error::Config) for options that contradict each other or
            /// the model, and for a single character that takes more tokens than a chunk may have;
            /// [`Error::Tokenize`](crate::Error::Tokenize) when the tokenizer cannot read it.
            #[cfg(feature = "chunking")]
            pub fn chunk(
                &self,
                text: impl AsRef<str>,
                options: &crate::ChunkOptions,
            ) -> crate::Result<Vec<crate::Chunk>> {
                self.chunk_with(text, options, &crate::EmbedOptions::default())
            }

            /// The same for chunks that are to be embedded with a prompt of the caller's; stops
            /// when it is cancelled.
            ///
            /// # Errors
            /// As [`chunk`](Self::chunk), and `Config` for a prompt name that is not known.
            #[cfg(feature = "chunking")]
            pub fn chunk_with(
                &self,
                text: impl AsRef<str>,
                options: &crate::ChunkOptions,
                embed: &crate::EmbedOptions,
            ) -> crate::Result<Vec<crate::Chunk>> {
                crate::chunk::chunk(&self.model, text.as_ref(), options, embed)
            }

            /// Components of a vector.
            pub fn dimension(&self) -> usize {
                self.model.dim
            }

            /// How the model means its vectors to be compared.
            pub fn metric(&self) -> crate::similarity::Similarity {
                self.model.metric
            }
        }
    };
}

/// What both handles of a model of sparse vectors say besides.
macro_rules! describe_words {
    ($handle:ty) => {
        impl $handle {
            /// Words that can have a weight.
            pub fn vocabulary_size(&self) -> usize {
                self.model.vocabulary_size()
            }

            /// The `most` heaviest words of a vector of this model, for people: the largest weight first, words of the same weight
            /// in the order of their ids. Looking up the words reads the whole vocabulary once a call.
            ///
            /// # Errors
            /// [`Error::InvalidEmbeddings`](crate::Error::InvalidEmbeddings) for an index past the vocabulary, which is of
            /// another model.
            pub fn words(
                &self,
                vector: crate::SparseRow<'_>,
                most: usize,
            ) -> crate::Result<Vec<crate::WordWeight>> {
                self.model.words(vector, most)
            }
        }
    };
}

/// What both handles of a model of late interaction say besides.
macro_rules! describe_tokens {
    ($handle:ty) => {
        impl $handle {
            /// A set without texts, for
            /// [`MultiVectorEmbeddings::push`](crate::MultiVectorEmbeddings::push): filled with a stream's vectors under
            /// these options, it equals the result of `embed_with`.
            ///
            /// # Errors
            /// [`Error::Config`](crate::Error::Config) when the model has no prompt of that name.
            pub fn empty_set(
                &self,
                options: &crate::MultiVectorOptions,
            ) -> crate::Result<crate::MultiVectorEmbeddings> {
                crate::multi_vector::empty_set(&self.model, options)
            }

            /// Components of a token's vector.
            pub fn dimension(&self) -> usize {
                self.model.dim
            }
        }
    };
}

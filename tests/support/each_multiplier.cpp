// Every multiplier of every sum in a file of VIPR, changed by itself: the checker of others must refuse each.
//
// Usage: each_multiplier FILE [MOST]. Compiled with -DVIPRCHK='"viprchk.cpp"', whose code is used as it is: it reads the
// file as ever, but the derivations one by one. Before each it is given the same derivation with one multiplier changed,
// for every multiplier (at most MOST of each derivation) by a little and by a lot; what was derived is told by
// whether a row has been added. Prints how many sums (lin) and rounded sums (rnd) were changed, then those accepted.

#include <fstream>
#include <iostream>
#include <limits>
#include <sstream>

#define main viprchk_main
#include VIPRCHK
#undef main

using namespace std;

// The checker reads this text; whether it has derived a row from it.
static bool derives(const string &line)
{
   stringbuf text("DER 1\n" + line + "\n");
   certificateFile.clear();
   streambuf *before = static_cast<ios &>(certificateFile).rdbuf(&text);
   const size_t rows = constraint.size();
   processDER();
   static_cast<ios &>(certificateFile).rdbuf(before);
   return constraint.size() > rows;
}

int main(int argc, char *argv[])
{
   certificateFile.open(argv[1]);
   const int most = argc > 2 ? atoi(argv[2]) : numeric_limits<int>::max();
   ostream told(cout.rdbuf());
   static ofstream nowhere("/dev/null");
   cout.rdbuf(nowhere.rdbuf());
   cerr.rdbuf(nowhere.rdbuf());
   if( !(processVER() && processVAR() && processINT() && processOBJ() && processCON() && processRTP() && processSOL()) )
      return 2;
   string line, word, left;
   int derivations = 0;
   certificateFile >> word >> derivations;
   getline(certificateFile, line);
   map<string, long> changed;
   vector<string> accepted, refused;
   for( int k = 0; k < derivations && getline(certificateFile, line); ++k )
   {
      const size_t brace = line.find('{');
      istringstream reason(line.substr(brace + 1));
      string rule;
      int count = 0;
      reason >> rule;
      vector<pair<string, mpq_class>> terms;
      if( rule == "lin" || rule == "rnd" )
      {
         reason >> count;
         for( int t = 0; t < count; ++t )
         {
            string row, factor;
            reason >> row >> factor;
            terms.emplace_back(row, mpq_class(factor));
         }
      }
      for( int t = 0; t < min(count, most); ++t )
         for( const mpq_class &other : {mpq_class(terms[t].second + mpq_class("1/1099511627776")), mpq_class(2 * terms[t].second)} )
         {
            ostringstream text;
            text << line.substr(0, brace) << "{ " << rule << " " << count;
            for( int s = 0; s < count; ++s )
               text << " " << terms[s].first << " " << (s == t ? other : terms[s].second);
            text << " } -1";
            ++changed[rule];
            if( derives(text.str()) )
            {
               constraint.pop_back();
               accepted.push_back(text.str());
            }
         }
      if( !derives(line) )
         refused.push_back(line);
   }
   told << changed["lin"] << " " << changed["rnd"] << " " << refused.size() << " " << accepted.size() << "\n";
   for( const string &text : accepted )
      told << text << "\n";
   cout.rdbuf(told.rdbuf());
   cerr.rdbuf(told.rdbuf());
   return 0;
}
